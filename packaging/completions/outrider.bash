# Completion of outrider for bash, written by `outrider options bash`.
_outrider() {
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} words=
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "generate chat score tokenize inspect bench verify-lossless doctor serve batch quantize pull models rm ps help" -- "$current"))
    return
  fi
  case ${COMP_WORDS[1]}:$previous in
    generate:--acceptance) words="coupled rejection block typical relaxed" ;;
    generate:--device) words="auto cpu cuda emulated" ;;
    generate:--draft-ahead) words="auto on off" ;;
    generate:--kv-cache-type) words="auto f32 bf16 f16 e4m3 q8_0" ;;
    generate:--pin) words="auto on off" ;;
    generate:--rank-memory) words="on off" ;;
    generate:--server-offline) words="never correct keep" ;;
    generate:--server-states) words="bf16 f16 q8" ;;
    generate:--weights) words="auto f32 bf16 f8 q8_0 q8 q4" ;;
    chat:--acceptance) words="coupled rejection block typical relaxed" ;;
    chat:--device) words="auto cpu cuda emulated" ;;
    chat:--draft-ahead) words="auto on off" ;;
    chat:--kv-cache-type) words="auto f32 bf16 f16 e4m3 q8_0" ;;
    chat:--pin) words="auto on off" ;;
    chat:--rank-memory) words="on off" ;;
    chat:--server-offline) words="never correct keep" ;;
    chat:--server-states) words="bf16 f16 q8" ;;
    chat:--weights) words="auto f32 bf16 f8 q8_0 q8 q4" ;;
    score:--device) words="auto cpu cuda emulated" ;;
    score:--draft-ahead) words="auto on off" ;;
    score:--kv-cache-type) words="auto f32 bf16 f16 e4m3 q8_0" ;;
    score:--pin) words="auto on off" ;;
    score:--rank-memory) words="on off" ;;
    score:--weights) words="auto f32 bf16 f8 q8_0 q8 q4" ;;
    inspect:--device) words="auto cpu cuda emulated" ;;
    inspect:--kv-cache-type) words="auto f32 bf16 f16 e4m3 q8_0" ;;
    bench:--acceptance) words="coupled rejection block typical relaxed" ;;
    bench:--device) words="auto cpu cuda emulated" ;;
    bench:--draft-ahead) words="auto on off" ;;
    bench:--kv-cache-type) words="auto f32 bf16 f16 e4m3 q8_0" ;;
    bench:--pin) words="auto on off" ;;
    bench:--rank-memory) words="on off" ;;
    bench:--weights) words="auto f32 bf16 f8 q8_0 q8 q4" ;;
    verify-lossless:--acceptance) words="coupled rejection block typical relaxed" ;;
    verify-lossless:--device) words="auto cpu cuda emulated" ;;
    verify-lossless:--draft-ahead) words="auto on off" ;;
    verify-lossless:--kv-cache-type) words="auto f32 bf16 f16 e4m3 q8_0" ;;
    verify-lossless:--pin) words="auto on off" ;;
    verify-lossless:--rank-memory) words="on off" ;;
    verify-lossless:--weights) words="auto f32 bf16 f8 q8_0 q8 q4" ;;
    doctor:--acceptance) words="coupled rejection block typical relaxed" ;;
    doctor:--device) words="auto cpu cuda emulated" ;;
    doctor:--draft-ahead) words="auto on off" ;;
    doctor:--kv-cache-type) words="auto f32 bf16 f16 e4m3 q8_0" ;;
    doctor:--pin) words="auto on off" ;;
    doctor:--rank-memory) words="on off" ;;
    doctor:--weights) words="auto f32 bf16 f8 q8_0 q8 q4" ;;
    serve:--acceptance) words="coupled rejection block typical relaxed" ;;
    serve:--chat-page) words="on off" ;;
    serve:--device) words="auto cpu cuda emulated" ;;
    serve:--draft-ahead) words="auto on off" ;;
    serve:--kv-cache-type) words="auto f32 bf16 f16 e4m3 q8_0" ;;
    serve:--pin) words="auto on off" ;;
    serve:--pooling) words="last mean rank" ;;
    serve:--rank-memory) words="on off" ;;
    serve:--weights) words="auto f32 bf16 f8 q8_0 q8 q4" ;;
    batch:--acceptance) words="coupled rejection block typical relaxed" ;;
    batch:--device) words="auto cpu cuda emulated" ;;
    batch:--draft-ahead) words="auto on off" ;;
    batch:--kv-cache-type) words="auto f32 bf16 f16 e4m3 q8_0" ;;
    batch:--pin) words="auto on off" ;;
    batch:--pooling) words="last mean rank" ;;
    batch:--rank-memory) words="on off" ;;
    batch:--weights) words="auto f32 bf16 f8 q8_0 q8 q4" ;;
    quantize:--type) words="q8_0 q6_k q5_0 q5_1 q4_k q4_0 q4_1 iq4_nl mxfp4" ;;
  esac
  if [ -z "$words" ] && [[ $current == -* ]]; then
    case ${COMP_WORDS[1]} in
    generate) words="--acceptance --cache-dir --chat --chat-template --chat-template-kwargs --config --corpus --cpu-experts --ctx --device --device-steps --draft-ahead --draft-ranks --dry-allowed-length --dry-base --dry-multiplier --dry-penalty-last-n --dry-sequence-breaker --frequency-penalty --gpu-layers --grammar --ignore-eos --json --json-schema --kernels --kv-cache-type --kv-pages --logit-bias --logprobs --lora --max-batch --max-batch-rows --max-tokens --memory --min-p --offline --packed-cache --page-size --pin --pipeline-parallel --prediction --prefill-chunk --presence-penalty --private --private-file --prompt --prompt-cache --prompt-cache-size --prompt-file --prompt-ids --pull --rank-memory --regex --repetition-penalty --seed --server --server-ca --server-key-file --server-model --server-offline --server-offline-after --server-states --show-draft --show-tree --slide --speculative --speculative-model --stop --system --temperature --tensor-parallel --think --thinking-message --threads --top-k --top-n-sigma --top-p --trace --typical-p --weights --xtc-probability --xtc-threshold --help" ;;
    chat) words="--acceptance --cache-dir --chat-template --chat-template-kwargs --config --corpus --cpu-experts --ctx --device --device-steps --draft-ahead --draft-ranks --dry-allowed-length --dry-base --dry-multiplier --dry-penalty-last-n --dry-sequence-breaker --frequency-penalty --gpu-layers --ignore-eos --kernels --kv-cache-type --kv-pages --logit-bias --lora --max-batch --max-batch-rows --max-tokens --memory --min-p --offline --packed-cache --page-size --pin --pipeline-parallel --prefill-chunk --presence-penalty --prompt-cache --prompt-cache-size --pull --rank-memory --repetition-penalty --seed --server --server-ca --server-key-file --server-model --server-offline --server-offline-after --server-states --slide --speculative --speculative-model --stop --system --temperature --tensor-parallel --think --thinking-message --threads --top-k --top-n-sigma --top-p --typical-p --weights --xtc-probability --xtc-threshold --help" ;;
    score) words="--cache-dir --config --cpu-experts --ctx --device --device-steps --draft-ahead --draft-ranks --gpu-layers --json --kernels --kv-cache-type --kv-pages --lora --max-batch --max-batch-rows --memory --offline --packed-cache --page-size --pin --pipeline-parallel --prefill-chunk --prompt-ids --pull --rank-memory --tensor-parallel --text-file --threads --weights --help" ;;
    tokenize) words="--config --file --frequent --ids --json --offline --pull --text --help" ;;
    inspect) words="--cache-dir --config --corpus --cpu-experts --ctx --device --gpu-layers --json --kv-cache-type --kv-pages --max-batch --max-batch-rows --memory --offline --page-size --prefill-chunk --pull --speculative --help" ;;
    bench) words="--acceptance --batch --cache-dir --config --context --corpus --cpu-experts --ctx --device --device-steps --draft-ahead --draft-ranks --draft-shape --drafters --dry-allowed-length --dry-base --dry-multiplier --dry-penalty-last-n --dry-sequence-breaker --frequency-penalty --gpu-layers --ignore-eos --json --kernels --kv-cache-type --kv-pages --limit --logit-bias --lora --max-batch --max-batch-rows --max-tokens --memory --min-p --nodes --offline --output --packed-cache --page-size --pin --pipeline-parallel --prefill-chunk --presence-penalty --profile --prompt-lengths --prompts --pull --rank-memory --repetition-penalty --rows --runs --seed --shape --skip-long --slide --speculative --speculative-model --stop --synthetic-acceptance --temperature --tensor-parallel --threads --top-k --top-n-sigma --top-p --trace --typical-p --weights --xtc-probability --xtc-threshold --help" ;;
    verify-lossless) words="--acceptance --cache-dir --compare-kernels --config --corpus --cpu-experts --ctx --device --device-steps --draft-ahead --draft-ranks --dry-allowed-length --dry-base --dry-multiplier --dry-penalty-last-n --dry-sequence-breaker --frequency-penalty --gpu-layers --ignore-eos --json --kernels --kv-cache-type --kv-pages --limit --logit-bias --lora --max-batch --max-batch-rows --max-tokens --memory --min-p --offline --packed-cache --page-size --pin --pipeline-parallel --prefill-chunk --presence-penalty --prompts --pull --rank-memory --repetition-penalty --seed --skip-long --slide --speculative --speculative-model --stop --temperature --tensor-parallel --threads --top-k --top-n-sigma --top-p --typical-p --weights --xtc-probability --xtc-threshold --help" ;;
    doctor) words="--acceptance --cache-dir --config --corpus --cpu-experts --ctx --device --device-steps --draft-ahead --draft-ranks --dry-allowed-length --dry-base --dry-multiplier --dry-penalty-last-n --dry-sequence-breaker --frequency-penalty --gpu-layers --ignore-eos --json --kernels --kv-cache-type --kv-pages --limit --logit-bias --lora --max-batch --max-batch-rows --max-tokens --memory --min-p --offline --packed-cache --page-size --pin --pipeline-parallel --prefill-chunk --presence-penalty --prompts --pull --rank-memory --repetition-penalty --seed --skip-long --slide --speculative --speculative-model --stop --temperature --tensor-parallel --threads --top-k --top-n-sigma --top-p --typical-p --weights --xtc-probability --xtc-threshold --help" ;;
    serve) words="--acceptance --allowed-host --api-key --api-key-file --audit-log --batch-beside --batch-folder --batch-folder-size --cache-dir --chat-page --chat-template --chat-template-kwargs --config --corpus --cors-origin --cpu-experts --ctx --device --device-steps --draft-ahead --draft-ranks --drain-timeout --dry-allowed-length --dry-base --dry-multiplier --dry-penalty-last-n --dry-sequence-breaker --frequency-penalty --gpu-layers --host --idle-unload --kernels --kv-cache-type --kv-pages --lora --lora-folder --max-batch --max-batch-rows --max-connections --max-connections-per-address --max-drafting-sessions --max-drafting-sessions-per-key --max-queue --max-running-per-key --max-tokens --max-tokens-limit --memory --min-p --models --models-memory --no-log-routes --offline --otlp-traces-endpoint --packed-cache --page-size --pin --pin-model --pipeline-parallel --pooling --port --prefill-chunk --presence-penalty --prompt-cache --prompt-cache-size --pull --rank-memory --remote-drafting --repetition-penalty --request-timeout --requests-per-minute-per-key --response-memory --root-path --served-model-name --slot-folder --speculative --speculative-model --ssl-certfile --ssl-keyfile --temperature --tensor-parallel --think --thinking-message --threads --tokens-per-minute-per-key --top-k --top-n-sigma --top-p --typical-p --weights --xtc-probability --xtc-threshold --help" ;;
    batch) words="--acceptance --cache-dir --chat-template --chat-template-kwargs --config --corpus --cpu-experts --ctx --device --device-steps --draft-ahead --draft-ranks --dry-allowed-length --dry-base --dry-multiplier --dry-penalty-last-n --dry-sequence-breaker --frequency-penalty --gpu-layers --kernels --kv-cache-type --kv-pages --lora --max-batch --max-batch-rows --max-tokens --memory --min-p --offline --output --packed-cache --page-size --pin --pipeline-parallel --pooling --prefill-chunk --presence-penalty --prompt-cache --prompt-cache-size --pull --rank-memory --repetition-penalty --served-model-name --speculative --speculative-model --temperature --tensor-parallel --think --thinking-message --threads --top-k --top-n-sigma --top-p --typical-p --weights --xtc-probability --xtc-threshold --help" ;;
    quantize) words="--config --force --json --threads --type --help" ;;
    pull) words="--json --offline --with-drafter --help" ;;
    models) words="--json --help" ;;
    rm) words="--help" ;;
    ps) words="--json --help" ;;
    esac
  fi
  if [ -n "$words" ]; then
    COMPREPLY=($(compgen -W "$words" -- "$current"))
  else
    COMPREPLY=($(compgen -f -- "$current"))
  fi
}
complete -o filenames -F _outrider outrider
