// SPDX-License-Identifier: Apache-2.0
#include "device_kernels/cuda_images.h"

#ifdef OUTRIDER_CUDA_VERSION
// The bytes of a file, and a zero that ends PTX.
#define OUTRIDER_EMBED(symbol, file)                                                        \
  asm(".pushsection .rodata\n.balign 64\n.hidden " #symbol "\n.globl " #symbol "\n" #symbol \
      ":\n.incbin \"" OUTRIDER_CUDA_FOLDER "/" file "\"\n.byte 0\n.popsection");            \
  extern "C" [[gnu::visibility("hidden")]] const char symbol[]
#define OUTRIDER_EMBED_LIST(list)                                        \
  OUTRIDER_EMBED(outrider_##list##_sm_80, #list "_kernels.sm_80.cubin"); \
  OUTRIDER_EMBED(outrider_##list##_sm_90, #list "_kernels.sm_90.cubin"); \
  OUTRIDER_EMBED(outrider_##list##_ptx_90, #list "_kernels.sm_90.ptx")
#define OUTRIDER_IMAGES(list, loops)                                                 \
  {.major = 8, .code = outrider_##list##_sm_80, .has_loops = loops},                 \
      {.major = 9, .code = outrider_##list##_sm_90, .has_loops = loops}, {           \
    .major = 9, .is_ptx = true, .code = outrider_##list##_ptx_90, .has_loops = loops \
  }

OUTRIDER_EMBED_LIST(row);
OUTRIDER_EMBED_LIST(product);
OUTRIDER_EMBED_LIST(block);
OUTRIDER_EMBED_LIST(attention);
OUTRIDER_EMBED_LIST(choice);
OUTRIDER_EMBED_LIST(tensor);
OUTRIDER_EMBED_LIST(loop);

namespace outrider {

const int kCudaVersion = OUTRIDER_CUDA_VERSION;

std::span<const CudaImage> cuda_images() {
  static const CudaImage images[] = {OUTRIDER_IMAGES(row, false),    OUTRIDER_IMAGES(product, false),
                                     OUTRIDER_IMAGES(block, false),  OUTRIDER_IMAGES(attention, false),
                                     OUTRIDER_IMAGES(choice, false), OUTRIDER_IMAGES(tensor, false),
                                     OUTRIDER_IMAGES(loop, true)};
  return images;
}

}  // namespace outrider
#else
namespace outrider {

const int kCudaVersion = 0;

std::span<const CudaImage> cuda_images() { return {}; }

}  // namespace outrider
#endif
