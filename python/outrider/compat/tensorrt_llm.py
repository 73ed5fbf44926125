# SPDX-License-Identifier: Apache-2.0
"""Makes `import tensorrt_llm` and `from tensorrt_llm.llmapi import ...` mean this package.

    import outrider.compat.tensorrt_llm
    from tensorrt_llm.llmapi import LLM, NGramDecodingConfig
"""

import sys
import types

import outrider

_DRAFTING = ("Drafter", "LlmRequest", "ScheduledRequests", "ResourceManager", "BaseResourceManager")
# The modules of TensorRT-LLM, and their names here.
_MODULES = {
    "tensorrt_llm": outrider.__all__,
    "tensorrt_llm.llmapi": outrider.__all__,
    "tensorrt_llm.llmapi.llm_args": outrider.__all__,
    "tensorrt_llm.sampling_params": ("SamplingParams", "GuidedDecodingParams"),
    "tensorrt_llm._torch": (),
    "tensorrt_llm._torch.speculative": _DRAFTING,
    "tensorrt_llm._torch.speculative.drafter": ("Drafter",),
    "tensorrt_llm._torch.pyexecutor": (),
    "tensorrt_llm._torch.pyexecutor.llm_request": ("LlmRequest",),
    "tensorrt_llm._torch.pyexecutor.resource_manager": ("ResourceManager", "BaseResourceManager"),
    "tensorrt_llm._torch.pyexecutor.scheduler": ("ScheduledRequests",),
}


def _install() -> None:
    present = sys.modules.get("tensorrt_llm")
    if present is not None and not hasattr(present, "_is_outrider"):
        raise ImportError("expected that tensorrt_llm is not imported yet, found it; import outrider.compat.tensorrt_llm "
                          "before it")
    for name, members in _MODULES.items():
        module = types.ModuleType(name, f"{name} as far as outrider stands in for it.")
        module.__path__ = []
        for member in members:
            setattr(module, member, getattr(outrider, member))
        sys.modules[name] = module
        parent, _, child = name.rpartition(".")
        if parent:
            setattr(sys.modules[parent], child, module)
    setattr(sys.modules["tensorrt_llm"], "_is_outrider", True)


_install()
