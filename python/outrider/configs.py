# SPDX-License-Identifier: Apache-2.0
"""Configurations by the names of TensorRT-LLM: bundles of keys of `--speculative` (docs/reference/options.md)."""

from typing import Any, Optional

from outrider._options import OptionGroup


class DecodingConfig(OptionGroup):
    """A way to draft.

    Args:
        max_draft_len: levels of the drafted tree, 1 to 64.
        keys: any other key of a speculative configuration; see docs/reference/options.md.
    """

    _name = "speculative_config"
    decoding_type: Optional[str] = None

    def to_dict(self) -> dict:
        """The keys of `speculative_config`, with `decoding_type` among them."""
        return {"decoding_type": self.decoding_type, **super().to_dict()}


class DraftTargetDecodingConfig(DecodingConfig):
    """A smaller model drafts.

    Args:
        max_draft_len: levels of the drafted tree, 1 to 64.
        speculative_model: directory, .gguf file or name of the draft model.
        speculative_token_map: file with the ids of the tokens that it may draft.
    """

    decoding_type = "DraftTarget"


class EagleDecodingConfig(DecodingConfig):
    """EAGLE or EAGLE-3, whichever the files of the head hold.

    Args:
        max_draft_len: levels of the drafted tree, 1 to 64.
        speculative_model: files of the head.
        eagle3_one_model: has no meaning here.
        use_dynamic_tree, dynamic_tree_max_topK, max_total_draft_tokens: a tree of the likeliest paths, the children
            of a node, and its nodes.
        eagle_choices: a tree by ranks, as in [[0], [0, 0], [1]].
        eagle3_layers_to_capture: layers of the target whose output is read.
    """

    decoding_type = "Eagle"


class Eagle3DecodingConfig(EagleDecodingConfig):
    """EAGLE-3; the arguments are the same as of EagleDecodingConfig."""

    decoding_type = "Eagle3"


class NGramDecodingConfig(DecodingConfig):
    """The drafter proposes what followed the last tokens in earlier text.

    Args:
        max_draft_len: tokens of a draft, 1 to 64.
        max_matching_ngram_size: longest pattern looked up, in tokens.
        is_keep_all: keep every continuation of a pattern, else only the newest.
        is_use_oldest: propose the oldest continuation, else the newest.
        is_public_pool: one pool for all requests, which leaks text between them.
    """

    decoding_type = "NGram"


class MTPDecodingConfig(DecodingConfig):
    """Multi-token prediction: layers that were trained with the target draft.

    Args:
        max_draft_len or num_nextn_predict_layers: levels of the drafted tree.
        speculative_token_map: file with the ids of the tokens that may be drafted.
        use_relaxed_acceptance_for_thinking, relaxed_topk, relaxed_delta: a lossy rule while the model thinks.
    """

    decoding_type = "MTP"


class LookaheadDecodingConfig(DecodingConfig):
    """Jacobi decoding: the target itself finds n-grams on the side.

    Args:
        max_window_size, max_ngram_size, max_verification_set_size: sizes as in the paper of Lookahead decoding.
    """

    decoding_type = "Lookahead"


class MedusaDecodingConfig(DecodingConfig):
    """Medusa heads; without `medusa_choices` the tree that the head's files or the paper name.

    Args:
        speculative_model: files of the heads.
        medusa_choices: a tree by ranks, as in [[0], [0, 0], [1]].
    """

    decoding_type = "Medusa"


class DFlashDecodingConfig(DecodingConfig):
    """DFlash: a head drafts a whole block at once.

    Args:
        max_draft_len: tokens of a draft, 1 to 64.
        speculative_model: files of the head.
        mask_token_id, target_layer_ids: the files decide them.
    """

    decoding_type = "DFlash"


class DSparkDecodingConfig(DecodingConfig):
    """DSpark: DFlash with tokens that depend on the one before them.

    Args:
        max_draft_len: tokens of a draft, 1 to 64.
        speculative_model: files of the head.
        mask_token_id, target_layer_ids, block_size, markov_rank, markov_head_type: the files decide them.
    """

    decoding_type = "DSpark"


class PARDDecodingConfig(DecodingConfig):
    """PARD: a smaller model drafts all tokens in one pass.

    Args:
        max_draft_len: tokens of a draft, 1 to 64.
        speculative_model: files of the model.
        mask_token_id: the files decide it.
    """

    decoding_type = "PARD"


class SADecodingConfig(DecodingConfig):
    """The drafter proposes what most often followed the longest suffixes seen before.

    Args:
        max_draft_len: tokens of a draft, 1 to 64.
    """

    decoding_type = "SA"


class AutoDecodingConfig(DecodingConfig):
    """Measured costs and acceptance decide what is drafted, and how much."""

    decoding_type = "Auto"


class UserProvidedDecodingConfig(DecodingConfig):
    """A drafter in Python.

    Args:
        max_draft_len: levels of the drafted tree, 1 to 64; without it 4.
        drafter: an `outrider.Drafter`, whose `prepare_draft_tokens` is called in each step.
        resource_manager: an `outrider.BaseResourceManager`, passed to it; may be left out.
        drafter_time_limit: seconds that one call may take. A drafter that takes longer is not asked again.
    """

    decoding_type = None  # the drafter is the method

    def __init__(self, drafter: Any, resource_manager: Any = None, drafter_time_limit: float = 10.0,
                 **keys: Any) -> None:
        super().__init__(**keys)
        self._drafter = drafter
        self._resource_manager = resource_manager
        self._time_limit = drafter_time_limit

    def to_dict(self) -> dict:
        """The keys of `speculative_config`; the drafter is none of them."""
        return OptionGroup.to_dict(self)

    def _drafts_itself(self) -> bool:
        return True

    @property
    def drafter(self) -> Any:
        return self._drafter

    @property
    def resource_manager(self) -> Any:
        return self._resource_manager

    @property
    def drafter_time_limit(self) -> float:
        return self._time_limit


class KvCacheConfig(OptionGroup):
    """Options of the KV cache.

    Args:
        dtype: "auto" (bf16), "bfloat16" or "float16".
        tokens_per_block: tokens of a page.
        free_gpu_memory_fraction, enable_block_reuse, ...: have no meaning here.
    """

    _name = "kv_cache_config"


class CudaGraphConfig(OptionGroup):
    """The class has no meaning here: devices have no such setting."""

    _name = "cuda_graph_config"


class TorchCompileConfig(OptionGroup):
    """The class has no meaning here: devices have no such setting."""

    _name = "torch_compile_config"


class MoeConfig(OptionGroup):
    """The class has no meaning here: the fastest kernels of this machine are chosen."""

    _name = "moe_config"


class SchedulerConfig(OptionGroup):
    """The class has no meaning here: requests are served in the order of their arrival."""

    _name = "scheduler_config"
