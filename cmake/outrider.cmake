# SPDX-License-Identifier: Apache-2.0
# The only CMake logic of the project: a few helper functions, one call each per folder.

add_library(outrider_flags INTERFACE)
target_include_directories(outrider_flags INTERFACE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR})
# The layout of simdjson's parser depends on this, and the headers of Python would define it only for their units.
target_compile_definitions(outrider_flags INTERFACE SIMDJSON_THREADS_ENABLED=1)
# -ffp-contract=off: a*b+c is fused only where a kernel says so, so that the same source gives the same bits everywhere.
target_compile_options(outrider_flags INTERFACE -Wall -Wextra -Wpedantic -Werror -Wno-psabi -ffp-contract=off)
# g++ 12 sees overlaps in std::string concatenation that are not there (GCC bug 105651).
target_compile_options(outrider_flags INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
  target_compile_options(outrider_flags INTERFACE -fsigned-char)  # as on x86-64
  # g++ 12 for ARM takes an optional that was tested for one that holds nothing.
  target_compile_options(outrider_flags INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
endif()
# Functions and data that nothing uses are left out of every program.
target_compile_options(outrider_flags INTERFACE -ffunction-sections -fdata-sections)
target_link_options(outrider_flags INTERFACE LINKER:--gc-sections)
# A failed check names its file from the source tree on, so that no artifact holds a path of the machine that built it.
set(OUTRIDER_NO_PATHS $<$<CONFIG:Release>:-fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=>)
# clang takes half the time without optimization, which sanitized tests want only where they compute. These folders and
# their tests wait for networks, files and terminals.
set(OUTRIDER_WAITS asio web platform hub server cli serving)
# These tests save more time so than they take longer to run, and what they test is optimized. The tests of other folders
# take two to five times as long: the linker keeps their copies of inline functions.
set(OUTRIDER_QUICK_TESTS adapters base chat_template config corpus device draft_heads drafters formats grammar models open
  server_api speculation tokenizer)
# Folders that compute nothing for a token are compiled for size, in two thirds of the time.
set(OUTRIDER_SMALL asio chat_template cli config hub open remote server server_api)
set(OUTRIDER_SANITIZED 0)
if(OUTRIDER_TESTS AND CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND CMAKE_CXX_FLAGS MATCHES "-fsanitize=")
  set(OUTRIDER_SANITIZED 1)
endif()
set(OUTRIDER_FAST_TO_COMPILE $<${OUTRIDER_SANITIZED}:-O0>)
# The preset coverage does not count kernels: counters in their loops make them ten times as slow.
set(OUTRIDER_UNCOUNTED)
if(CMAKE_CXX_FLAGS MATCHES "-fcoverage-mapping")
  set(OUTRIDER_UNCOUNTED -fno-profile-instr-generate -fno-coverage-mapping)
endif()
find_package(Threads REQUIRED)
target_link_libraries(outrider_flags INTERFACE Threads::Threads)

# outrider_unity(<max> <source>...): sources that follow one another are compiled together, at most <max> in one unit,
# because reading the headers is most of the work; a room of some size has separate units. The names of unnamed
# namespaces must therefore differ within a folder; a test whose names collide with another test's is in a namespace with
# the name of its file. Some sources compile by themselves: what a second library compiles, too (listed under ALONE), the
# kernels of an instruction set, generated files, sources with own flags.
function(outrider_unity max)
  math(EXPR enough "${max} / 2")
  set(count 0)
  set(unit 0)
  set(last_room "")
  foreach(source ${ARGN})
    cmake_path(GET source PARENT_PATH room)
    if(count GREATER_EQUAL max OR (count GREATER_EQUAL enough AND NOT room STREQUAL last_room))
      math(EXPR unit "${unit} + 1")
      set(count 0)
    endif()
    math(EXPR count "${count} + 1")
    set(last_room "${room}")
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP unit_${unit})
  endforeach()
endfunction()

# outrider_library(<folder> [ROOMS subfolder...] [DEPS lib...] [SYSTEM lib...] [ALONE test...] [LONG test...]): every .cc
# of the folder and of its rooms except *_test.cc becomes outrider_<folder>. Every *_test.cc becomes the test program
# <folder>_test (CTest label "unit"), or <folder>_long_test if it is among the long ones (CTest label "long").
function(outrider_library folder)
  cmake_parse_arguments(ARG "" "" "ROOMS;DEPS;SYSTEM;ALONE;LONG" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS *.cc)
  foreach(room ${ARG_ROOMS})
    file(GLOB room_sources CONFIGURE_DEPENDS ${room}/*.cc)
    list(APPEND sources ${room_sources})
  endforeach()
  set(tests ${sources})
  list(FILTER sources EXCLUDE REGEX "_test\\.cc$")
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  list(TRANSFORM ARG_LONG PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
  if(ARG_LONG)
    list(REMOVE_ITEM tests ${ARG_LONG})
  endif()
  list(TRANSFORM ARG_DEPS PREPEND outrider_)
  if(sources)
    outrider_unity(15 ${sources})
    add_library(outrider_${folder} STATIC ${sources})
    set_target_properties(outrider_${folder} PROPERTIES UNITY_BUILD_MODE GROUP)
    target_link_libraries(outrider_${folder} PUBLIC outrider_flags ${ARG_DEPS} PRIVATE ${ARG_SYSTEM})
    target_compile_options(outrider_${folder} PRIVATE ${OUTRIDER_NO_PATHS})
    if(folder IN_LIST OUTRIDER_WAITS)
      target_compile_options(outrider_${folder} PRIVATE ${OUTRIDER_FAST_TO_COMPILE})
    endif()
    if(folder IN_LIST OUTRIDER_SMALL)
      target_compile_options(outrider_${folder} PRIVATE $<$<CONFIG:Release>:-Os>)
    endif()
  else()
    add_library(outrider_${folder} INTERFACE)
    target_link_libraries(outrider_${folder} INTERFACE outrider_flags ${ARG_DEPS})
  endif()
  if(tests AND OUTRIDER_TESTS)
    outrider_test(${folder}_test SOURCES ${tests} DEPS ${folder} SYSTEM ${ARG_SYSTEM} ALONE ${ARG_ALONE})
    if(ARG_LONG)
      outrider_test(${folder}_long_test SOURCES ${ARG_LONG} DEPS ${folder} SYSTEM ${ARG_SYSTEM} ALONE ${ARG_ALONE} LABEL long)
    endif()
  endif()
endfunction()

# outrider_test(<name> SOURCES file... DEPS folder... [SYSTEM lib...] [ALONE file...]
#               [LABEL unit|long|cli|lossless|slow|trainer] [SHARDS n]):
# a program as n tests of ctest if it is long, so that all cores share it and the output says how far it is. It is also
# part of the target <label>_tests, so that a build may leave out what it will not run. Slow tests are no part of "all".
# "long" is for unit tests that would take minutes under a sanitizer, which runs "unit" and "cli".
function(outrider_test name)
  cmake_parse_arguments(ARG "" "LABEL;SHARDS" "SOURCES;DEPS;SYSTEM;ALONE" ${ARGN})
  if(NOT ARG_LABEL)
    set(ARG_LABEL unit)
  endif()
  list(GET ARG_DEPS 0 tested)
  list(TRANSFORM ARG_DEPS PREPEND outrider_)
  outrider_unity(10 ${ARG_SOURCES})
  set_source_files_properties(${ARG_ALONE} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  add_executable(${name} ${ARG_SOURCES})
  set_target_properties(${name} PROPERTIES UNITY_BUILD_MODE GROUP)
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} ${ARG_SYSTEM} GTest::gtest GTest::gmock GTest::gtest_main)
  target_compile_definitions(${name} PRIVATE OUTRIDER_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  # Compiling tests takes most of a build; what they test is compiled as it ships. Long suites want fast tests, too.
  if(tested IN_LIST OUTRIDER_WAITS OR tested IN_LIST OUTRIDER_QUICK_TESTS)
    target_compile_options(${name} PRIVATE ${OUTRIDER_FAST_TO_COMPILE})
  endif()
  if(ARG_LABEL STREQUAL slow)
    set_target_properties(${name} PROPERTIES EXCLUDE_FROM_ALL ON)
  else()
    target_compile_options(${name} PRIVATE $<$<AND:$<CONFIG:Release>,$<CXX_COMPILER_ID:GNU>>:-Og -Wno-maybe-uninitialized>)
  endif()
  if(ARG_SHARDS)
    foreach(shard RANGE 1 ${ARG_SHARDS})
      math(EXPR index "${shard} - 1")
      add_test(NAME ${name}_${shard} COMMAND ${name} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
      set_tests_properties(${name}_${shard} PROPERTIES LABELS ${ARG_LABEL}
                           ENVIRONMENT "GTEST_TOTAL_SHARDS=${ARG_SHARDS};GTEST_SHARD_INDEX=${index}")
    endforeach()
  else()
    add_test(NAME ${name} COMMAND ${name} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
    set_tests_properties(${name} PROPERTIES LABELS ${ARG_LABEL})
  endif()
  if(NOT TARGET ${ARG_LABEL}_tests)
    add_custom_target(${ARG_LABEL}_tests)
  endif()
  add_dependencies(${ARG_LABEL}_tests ${name})
endfunction()

# outrider_isa_library(<isa> FLAGS flag... [CPU flag]): the kernels of one instruction set, compiled with exactly the
# flags its name promises. tools/check_isa_symbols.py proves that nothing compiled here can be linked in elsewhere.
function(outrider_isa_library isa)
  cmake_parse_arguments(ARG "" "CPU" "FLAGS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${isa}/*.cc)
  add_library(outrider_kernels_${isa} OBJECT ${sources})
  set_target_properties(outrider_kernels_${isa} PROPERTIES UNITY_BUILD OFF)
  target_link_libraries(outrider_kernels_${isa} PUBLIC outrider_flags)
  outrider_sanitized_kernels(runs ${ARG_CPU})
  target_compile_options(outrider_kernels_${isa} PRIVATE ${ARG_FLAGS} ${runs} ${OUTRIDER_UNCOUNTED})
endfunction()

# outrider_sanitized_kernels(<variable> [cpu flag]): options of sanitized kernels. Their tests spend most of their time
# there, so they are optimized; the preset ubsan checks operations. Kernels that this machine cannot run (by the name in
# /proc/cpuinfo) are only compiled.
function(outrider_sanitized_kernels variable)
  set(options $<$<CONFIG:RelWithDebInfo>:-O2> $<${OUTRIDER_SANITIZED}:-fno-sanitize=undefined>)
  if(ARGN AND EXISTS /proc/cpuinfo)
    file(STRINGS /proc/cpuinfo cpu REGEX "^flags.* ${ARGN}( |$)" LIMIT_COUNT 1)
    if(NOT cpu)
      set(options $<${OUTRIDER_SANITIZED}:-fno-sanitize=all>)
    endif()
  endif()
  set(${variable} ${options} PARENT_SCOPE)
endfunction()

# outrider_device_library(<list>...): where there is nvcc, the kernels of cuda/<list>_kernels.cu for each device, which
# cuda_images.cc has in it, and a test of what nvcc made of them.
find_program(OUTRIDER_NVCC nvcc HINTS /usr/local/cuda/bin)
function(outrider_ptx source arch output)
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS *.h *.cuh)
  set(source ${CMAKE_CURRENT_SOURCE_DIR}/${source})
  set(compile ${PROJECT_SOURCE_DIR}/tools/compile_ptx.sh)
  add_custom_command(OUTPUT ${output}.cubin ${output}.ptx ${output}.fmad.ptx ${output}.log
    COMMAND ${compile} ${OUTRIDER_NVCC} ${arch} ${source} ${output} DEPENDS ${compile} ${source} ${headers} VERBATIM)
endfunction()
function(outrider_device_library)
  set(arguments)
  if(OUTRIDER_NVCC)
    set(planted ${CMAKE_CURRENT_BINARY_DIR}/planted_mistakes)
    outrider_ptx(cuda/planted_mistakes.cu sm_80 ${planted})
    set(arguments --planted ${planted}.ptx ${planted}.fmad.ptx)
    set(cubins)
    foreach(list ${ARGN})
      foreach(arch sm_80 sm_90)
        set(output ${CMAKE_CURRENT_BINARY_DIR}/${list}_kernels.${arch})
        outrider_ptx(cuda/${list}_kernels.cu ${arch} ${output})
        list(APPEND cubins ${output}.cubin)
        list(APPEND arguments --ptx ${output}.ptx ${output}.fmad.ptx ${output}.log)
      endforeach()
    endforeach()
    add_custom_target(outrider_device_code ALL DEPENDS ${cubins} ${planted}.ptx)
    list(APPEND arguments --cubin ${cubins})
    execute_process(COMMAND ${OUTRIDER_NVCC} --version OUTPUT_VARIABLE version)
    string(REGEX MATCH "release ([0-9]+)\\.([0-9]+)" version "${version}")
    math(EXPR version "${CMAKE_MATCH_1} * 1000 + ${CMAKE_MATCH_2} * 10")
    set_source_files_properties(cuda_images.cc PROPERTIES OBJECT_DEPENDS "${cubins}" SKIP_UNITY_BUILD_INCLUSION ON
      COMPILE_DEFINITIONS "OUTRIDER_CUDA_VERSION=${version};OUTRIDER_CUDA_FOLDER=\"${CMAKE_CURRENT_BINARY_DIR}\"")
  endif()
  if(OUTRIDER_TESTS)
    add_test(NAME check_device_code COMMAND ${PROJECT_SOURCE_DIR}/tools/check_device_code.py ${arguments})
    set_tests_properties(check_device_code PROPERTIES LABELS unit SKIP_RETURN_CODE 77)
    if(OUTRIDER_NVCC)
      add_dependencies(unit_tests outrider_device_code)
    endif()
  endif()
endfunction()

# outrider_emulated_kernels(<isa> <list>... [FLAGS flag...]): the device kernels of emulated/<list>_kernels.cc for one
# instruction set, as objects of outrider_device_kernels. They too define nothing but their table.
function(outrider_emulated_kernels isa)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "" "" "FLAGS")
  foreach(list ${ARG_UNPARSED_ARGUMENTS})
    set(objects outrider_emulated_${list}_${isa})
    add_library(${objects} OBJECT emulated/${list}_kernels.cc)
    set_target_properties(${objects} PROPERTIES UNITY_BUILD OFF)
    target_link_libraries(${objects} PUBLIC outrider_flags)
    target_compile_definitions(${objects} PRIVATE OUTRIDER_KERNEL_LIST=${isa}_${list}_kernels)
    # Most of a kernel is inlined: without optimization its stack would have a place for every number. Checks of every
    # operation would make the compiler take minutes; the lanes have no operation that is undefined.
    target_compile_options(${objects} PRIVATE $<IF:$<CONFIG:Release>,-O3,-O1> ${ARG_FLAGS}
      $<$<NOT:$<CONFIG:Release>>:-fno-sanitize=undefined> ${OUTRIDER_UNCOUNTED})
    target_sources(outrider_device_kernels PRIVATE $<TARGET_OBJECTS:${objects}>)
    set_property(GLOBAL APPEND PROPERTY outrider_emulated_objects ${isa}_${list}_kernels=$<TARGET_OBJECTS:${objects}>)
  endforeach()
endfunction()

# outrider_page(<library> <folder> <name> <title> [LIBRARIES file...] [SCRIPTS file...]): one page, src/web/frame.html
# around the body <folder>/page.html. It has src/web/shared.css and its style.css, src/web/shared.js, the JavaScript
# libraries and its scripts (script.js). tools/make_page.py makes it `extern const std::string_view <name>` of the library.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
function(outrider_page library folder name title)
  cmake_parse_arguments(PARSE_ARGV 4 ARG "" "" "LIBRARIES;SCRIPTS")
  if(NOT ARG_SCRIPTS)
    set(ARG_SCRIPTS script.js)
  endif()
  set(shared ${PROJECT_SOURCE_DIR}/src/web)
  set(own ${CMAKE_CURRENT_SOURCE_DIR}/${folder})
  list(TRANSFORM ARG_SCRIPTS PREPEND ${own}/)
  set(styles ${shared}/shared.css ${own}/style.css)
  set(scripts ${shared}/shared.js ${ARG_LIBRARIES} ${ARG_SCRIPTS})
  set(maker ${PROJECT_SOURCE_DIR}/tools/make_page.py)
  add_custom_command(OUTPUT ${name}.cc
    COMMAND ${Python3_EXECUTABLE} ${maker} ${name} ${title} --frame ${shared}/frame.html --body ${own}/page.html
            --styles ${styles} --scripts ${scripts} --output ${CMAKE_CURRENT_BINARY_DIR}/${name}.cc
    DEPENDS ${maker} ${shared}/frame.html ${own}/page.html ${styles} ${scripts} VERBATIM)
  # A page is longer than the 65536 characters that every compiler must take.
  set_source_files_properties(${CMAKE_CURRENT_BINARY_DIR}/${name}.cc PROPERTIES COMPILE_OPTIONS -Wno-overlength-strings)
  target_sources(${library} PRIVATE ${CMAKE_CURRENT_BINARY_DIR}/${name}.cc)
endfunction()
