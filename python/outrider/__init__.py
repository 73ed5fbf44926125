# SPDX-License-Identifier: Apache-2.0
"""Language models on CPUs, faster by speculative decoding that never changes the output.

    from outrider import LLM, SamplingParams

    llm = LLM(speculative_config="auto")
    output = llm.generate("Once upon a time", SamplingParams(max_tokens=64))
    print(output.outputs[0].text, output.speculation.acceptance_length)
"""

from outrider._program import pull
from outrider.configs import (AutoDecodingConfig, CudaGraphConfig, DecodingConfig, DraftTargetDecodingConfig,
                              Eagle3DecodingConfig, EagleDecodingConfig, KvCacheConfig, LookaheadDecodingConfig,
                              MedusaDecodingConfig, MoeConfig, MTPDecodingConfig, NGramDecodingConfig, SchedulerConfig,
                              TorchCompileConfig, UserProvidedDecodingConfig)
from outrider.drafter import BaseResourceManager, Drafter, LlmRequest, ScheduledRequests
from outrider.lib._engine import version as __version__
from outrider.llm import LLM, Tokenizer
from outrider.results import CompletionOutput, Node, RequestOutput, SpeculationStats, Step
from outrider.sampling import SamplingParams

# TensorRT-LLM's name for what follows the requests.
ResourceManager = BaseResourceManager

__all__ = [
    "AutoDecodingConfig", "BaseResourceManager", "CompletionOutput", "CudaGraphConfig", "DecodingConfig",
    "DraftTargetDecodingConfig", "Drafter", "Eagle3DecodingConfig", "EagleDecodingConfig", "KvCacheConfig", "LLM",
    "LlmRequest", "LookaheadDecodingConfig", "MTPDecodingConfig", "MedusaDecodingConfig", "MoeConfig",
    "NGramDecodingConfig", "Node", "RequestOutput", "ResourceManager", "SamplingParams", "ScheduledRequests",
    "SchedulerConfig", "SpeculationStats", "Step", "Tokenizer", "TorchCompileConfig", "UserProvidedDecodingConfig",
    "__version__", "pull",
]
