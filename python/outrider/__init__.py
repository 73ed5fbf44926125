# SPDX-License-Identifier: Apache-2.0
"""Language models on CPUs, faster by speculative decoding that never changes the output.

    from outrider import LLM, SamplingParams

    llm = LLM(speculative_config="auto")
    output = llm.generate("Once upon a time", SamplingParams(max_tokens=64))
    print(output.outputs[0].text, output.speculation.acceptance_length)
"""

from outrider._program import pull
from outrider.configs import (AutoDecodingConfig, CudaGraphConfig, DecodingConfig, DFlashDecodingConfig,
                              DraftTargetDecodingConfig, DSparkDecodingConfig, Eagle3DecodingConfig,
                              EagleDecodingConfig, KvCacheConfig, LookaheadDecodingConfig, MedusaDecodingConfig,
                              MoeConfig, MTPDecodingConfig, NGramDecodingConfig, PARDDecodingConfig,
                              SADecodingConfig, SchedulerConfig, TorchCompileConfig, UserProvidedDecodingConfig)
from outrider.drafter import BaseResourceManager, Drafter, LlmRequest, ScheduledRequests
from outrider.lib._engine import version as __version__
from outrider.llm import LLM, Tokenizer
from outrider.pooling import EmbeddingOutput, PooledOutput, PoolingOutput, PoolingParams, ScoringOutput
from outrider.results import CompletionOutput, Node, RequestOutput, SpeculationStats, Step
from outrider.sampling import GuidedDecodingParams, SamplingParams

# TensorRT-LLM's name for what follows the requests, and vLLM's for the form of an output.
ResourceManager = BaseResourceManager
StructuredOutputsParams = GuidedDecodingParams
EmbeddingRequestOutput = PoolingRequestOutput = ScoringRequestOutput = PooledOutput

__all__ = [
    "AutoDecodingConfig", "BaseResourceManager", "CompletionOutput", "CudaGraphConfig", "DecodingConfig",
    "DFlashDecodingConfig", "Drafter", "DraftTargetDecodingConfig", "DSparkDecodingConfig", "Eagle3DecodingConfig",
    "EagleDecodingConfig", "EmbeddingOutput", "EmbeddingRequestOutput", "GuidedDecodingParams", "KvCacheConfig", "LLM",
    "LlmRequest", "LookaheadDecodingConfig", "MedusaDecodingConfig", "MoeConfig", "MTPDecodingConfig",
    "NGramDecodingConfig", "Node", "PARDDecodingConfig", "PooledOutput", "PoolingOutput", "PoolingParams",
    "PoolingRequestOutput", "RequestOutput", "ResourceManager", "SADecodingConfig", "SamplingParams",
    "ScheduledRequests", "SchedulerConfig", "ScoringOutput", "ScoringRequestOutput", "SpeculationStats", "Step",
    "StructuredOutputsParams", "Tokenizer", "TorchCompileConfig", "UserProvidedDecodingConfig", "__version__", "pull",
]
