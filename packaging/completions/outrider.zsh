#compdef outrider
# Completion of outrider for zsh, written by `outrider options zsh`.
_outrider() {
  local -a commands=(
    'generate:continue a prompt, or answer it'
    'chat:talk to a model that has a chat template'
    'score:log-probability of every token of a text'
    'tokenize:text to token ids and back'
    'inspect:what a model file holds'
    'bench:speed with and without speculation, side by side'
    'verify-lossless:prove that speculation does not change the output'
    'doctor:whether a drafter fits a model, agrees with it and helps'
    'serve:a server for clients of OpenAI'\''s and Anthropic'\''s APIs'
    'batch:answer a file of requests, many at once'
    'quantize:write a model as a smaller .gguf file'
    'pull:fetch a model from the Hugging Face Hub'
    'models:the models on this machine'
    'rm:remove a model that pull has fetched'
    'ps:the servers that run on this machine'
  )
  if (( CURRENT == 2 )); then
    _describe command commands
    return
  fi
  local word=$words[2]
  words=($words[2,-1])
  (( CURRENT-- ))
  case $word in
    generate)
      _arguments \
        '--acceptance[how drafts are accepted; coupled (same seed, same text as without speculation), rejection and block (same distribution) are lossless, typical and relaxed are not]:RULE:(coupled rejection block typical relaxed)' \
        '--cache-dir[where measured costs of passes and the index of --corpus are kept from run to run; without it $XDG_CACHE_HOME/outrider or ~/.cache/outrider; none\: nowhere]:DIR:_files' \
        '--chat[ask the prompt as a user through the model'\''s chat template, instead of continuing it]' \
        '--chat-template[a Jinja template for chats in place of the model'\''s]:FILE:_files' \
        '--chat-template-kwargs[variables of the template, as in {"enable_thinking"\: false}; serve\: a request'\''s own come before]:JSON:_files' \
        '--config[YAML file of options; command line and environment come before it]:FILE:_files' \
        '--corpus[text that answers may repeat, or a folder of such texts, which Suffix and Auto draft from; .jsonl\: each line is a text; its index is built once and kept in --cache-dir; may be repeated]:FILE:_files' \
        '--cpu-experts[the target'\''s first layers of which the processor has the experts; auto\: as few as the device needs; or all]:N:_files' \
        '--ctx[longest sequence in tokens, as in 8192, 8k (8000) or 8K (8192); 0 or auto\: what the model was made for, or what memory holds of it]:N:_files' \
        '--device[machine that computes the networks; cuda\: a GPU of NVIDIA; emulated\: its kernels on this processor, slowly and with the same text; auto\: a checked GPU that can compute them, or else the processor]:NAME:(auto cpu cuda emulated)' \
        '--device-steps[steps that a device makes by itself before it waits for this machine\: plain ones, and trees of a draft model, EAGLE, MTP, Medusa, DFlash or DSpark; 0\: it waits after every pass]:N:_files' \
        '--draft-ahead[ranks of --draft-ranks draft after likely verdicts while the target verifies; auto\: where measured to pay]:WHEN:(auto on off)' \
        '--draft-ranks[ranks for draft models, each for a part of the sequences; 0\: they draft with the target]:N:_files' \
        '--dry-allowed-length[DRY\: shorter repetitions cost nothing]:LENGTH:_files' \
        '--dry-base[DRY\: how fast the penalty grows]:BASE:_files' \
        '--dry-multiplier[DRY\: a token that would go on a repetition of N tokens loses M * BASE^(N - LENGTH) of its logit; 0\: none]:M:_files' \
        '--dry-penalty-last-n[DRY\: tokens of prompt and output that are searched; -1\: all, 0\: none]:N:_files' \
        '--dry-sequence-breaker[DRY\: tokens with this text end repetitions; may be repeated; none\: no text does; without it a line break, a colon, a quotation mark and an asterisk]:TEXT:_files' \
        '--frequency-penalty[subtracted once per occurrence in the output]:F:_files' \
        '--gpu-layers[the target'\''s last layers that are on the device, its output head being one; auto\: as many as fit; or all]:N:_files' \
        '--grammar[the output is of this grammar; a text or @FILE]:GBNF:_files' \
        '--ignore-eos[go on after the model'\''s end-of-text token]' \
        '--json[print one JSON object]' \
        '--json-schema[the output is JSON of this schema; a text or @FILE]:JSON:_files' \
        '--kernels[kernel table, such as reference or avx2; cuda_tc\: a GPU'\''s tensor cores; without it the fastest there is]:NAME:_files' \
        '--kv-cache-type[type of cached keys and values; auto\: bf16; q8_0\: 8 bits and a scale per 32 numbers; e4m3\: 8 bits]:TYPE:(auto f32 bf16 f16 e4m3 q8_0)' \
        '--kv-pages[pages of the KV cache; 0\: enough for a full batch, within a third of free memory]:N:_files' \
        '--logit-bias[added to the logit of a token; -inf forbids it; may be repeated]:ID=VALUE:_files' \
        '--logprobs[with --json\: the log-probability of every output token, and of the N likeliest in its place; -1\: none]:N:_files' \
        '--lora[a LoRA adapter\: a folder of PEFT or a GGUF file, perhaps with \:SCALE behind it. With a name only requests that choose it use it, without one all do; may be given again]:[NAME=]PATH:_files' \
        '--max-batch[sequences that run together]:N:_files' \
        '--max-batch-rows[rows of one pass\: prompt tokens, pending tokens and drafted ones; at least --max-batch; 0\: what --prefill-chunk and a full batch with its drafts need]:N:_files' \
        '--max-tokens[tokens of output, at most; chat\: of one answer]:N:_files' \
        '--memory[most memory to use, such as 800M or 6G; layers that do not fit are read from the packed cache in every pass, ahead of the layer that needs them]:SIZE:_files' \
        '--min-p[keep tokens with at least this fraction of the likeliest one'\''s probability]:P:_files' \
        '--offline[fetch nothing, as HF_HUB_OFFLINE=1 does]' \
        '--packed-cache[folder for weights in the layout of the kernels\: written by the first start, mapped by later ones]:DIR:_files' \
        '--page-size[tokens per page of the KV cache]:N:_files' \
        '--pin[keep each thread on one processor; auto\: with several NUMA nodes and a thread for every processor]:WHEN:(auto on off)' \
        '--pipeline-parallel[groups of the target'\''s layers, each with --tensor-parallel ranks]:N:_files' \
        '--prediction[text that much of the output should repeat, such as the file to be edited\: drafts come from it]:FILE:_files' \
        '--prefill-chunk[prompt tokens computed in one pass]:N:_files' \
        '--presence-penalty[subtracted once from tokens already in the output]:P:_files' \
        '--private[end of the prompt that --server must not see; the drafter on this machine writes the answer]:TEXT:_files' \
        '--private-file[the private end of the prompt is the whole file]:FILE:_files' \
        '--prompt[the prompt; - reads standard input]:TEXT:_files' \
        '--prompt-cache[folder for what prompts and answers have computed\: later starts read it where a prompt begins alike]:DIR:_files' \
        '--prompt-cache-size[most bytes in that folder, for all models together, such as 800M or 6G; the longest unused files go first]:SIZE:_files' \
        '--prompt-file[the prompt is the whole file]:FILE:_files' \
        '--prompt-ids[the prompt as token ids, as in 1,2,3]:IDS:_files' \
        '--pull[fetch a model that is named and is not on this machine; without it a terminal asks first]' \
        '--rank-memory[processes of one machine that share a target exchange numbers in shared memory; off\: through MPI]:WHEN:(on off)' \
        '--regex[the output matches this regular expression; a text or @FILE]:PATTERN:_files' \
        '--repetition-penalty[divides positive logits of tokens seen in prompt or output, multiplies negative ones]:R:_files' \
        '--seed[seed of all randomness; the same seed gives the same text]:S:_files' \
        '--server[decode on a server of --remote-drafting, as in ws\://127.0.0.1\:8000, or wss\:// for TLS, and draft here; MODEL gives tokenizer and chat template]:URL:_files' \
        '--server-ca[with wss\://\: PEM file of certificates to trust beside the system'\''s own]:FILE:_files' \
        '--server-key-file[file with the key to show to --server, in its first line]:FILE:_files' \
        '--server-model[the model there, where --server has several]:NAME:_files' \
        '--server-offline[what to do while --server is out of reach; never\: wait for it; correct\: the drafter writes, and the server'\''s own text replaces what differs later; keep\: the drafter writes, and its text stays]:WAY:(never correct keep)' \
        '--server-offline-after[how long --server is waited for before the drafter writes alone]:SECONDS:_files' \
        '--server-states[numbers of the target'\''s states that --server sends for draft heads; q8 takes half of the bytes]:TYPE:(bf16 f16 q8)' \
        '--show-draft[mark which tokens were drafted and accepted, corrected, or added by the target]' \
        '--show-tree[print the tree of every step\: probabilities, what was accepted, and why the rest was not; with --json as part of the object]' \
        '--slide[where prompt and output fill the context, keep the first N tokens, drop the older half of the others and go on; -1\: the output ends there]:N:_files' \
        '--speculative[method,key=value,... or a YAML or JSON file\: auto, none, ngram, draft_target, ...; keys are listed in docs/reference/options.md; without it auto]:CONFIG:_files' \
        '--speculative-model[draft model or learned drafter; without --speculative what it is decides the method]:DIR:_files' \
        '--stop[end the output before this text; may be repeated]:TEXT:_files' \
        '--system[system message before the prompt; implies --chat]:TEXT:_files' \
        '--temperature[0 is greedy\: always the likeliest token; serve\: where neither the request nor generation_config.json says]:T:_files' \
        '--tensor-parallel[ranks that share each layer of the target\: processes of mpirun, or else threads]:N:_files' \
        '--think[whether a model that can think first does so\: on, off, or the tokens that it may think; without it as its template decides; serve\: a request may say otherwise]:HOW:_files' \
        '--thinking-message[is written where the tokens of --think end, before the mark that closes the thinking]:TEXT:_files' \
        '--threads[threads; 0\: one per core]:N:_files' \
        '--top-k[keep the K likeliest tokens; 0\: all]:K:_files' \
        '--top-n-sigma[keep tokens within N standard deviations of all logits below the largest one; -1 or 0\: all]:N:_files' \
        '--top-p[keep the smallest set of likeliest tokens that reaches this probability]:P:_files' \
        '--trace[write an HTML page with the timeline, the trees and the acceptance of every step; replaces FILE]:FILE:_files' \
        '--typical-p[keep the tokens nearest to the expected information that together reach this probability]:P:_files' \
        '--weights[type the weights are held in; auto\: as stored, q8\: one scale per output, q4\: q4_0, f8\: E4M3 in blocks of 128]:TYPE:(auto f32 bf16 f8 q8_0 q8 q4)' \
        '--xtc-probability[how often the likeliest tokens are left out, but for the last that reaches --xtc-threshold]:P:_files' \
        '--xtc-threshold[the least probability of a token that --xtc-probability leaves out]:P:_files' \
        '*:file:_files' ;;
    chat)
      _arguments \
        '--acceptance[how drafts are accepted; coupled (same seed, same text as without speculation), rejection and block (same distribution) are lossless, typical and relaxed are not]:RULE:(coupled rejection block typical relaxed)' \
        '--cache-dir[where measured costs of passes and the index of --corpus are kept from run to run; without it $XDG_CACHE_HOME/outrider or ~/.cache/outrider; none\: nowhere]:DIR:_files' \
        '--chat-template[a Jinja template for chats in place of the model'\''s]:FILE:_files' \
        '--chat-template-kwargs[variables of the template, as in {"enable_thinking"\: false}; serve\: a request'\''s own come before]:JSON:_files' \
        '--config[YAML file of options; command line and environment come before it]:FILE:_files' \
        '--corpus[text that answers may repeat, or a folder of such texts, which Suffix and Auto draft from; .jsonl\: each line is a text; its index is built once and kept in --cache-dir; may be repeated]:FILE:_files' \
        '--cpu-experts[the target'\''s first layers of which the processor has the experts; auto\: as few as the device needs; or all]:N:_files' \
        '--ctx[longest sequence in tokens, as in 8192, 8k (8000) or 8K (8192); 0 or auto\: what the model was made for, or what memory holds of it]:N:_files' \
        '--device[machine that computes the networks; cuda\: a GPU of NVIDIA; emulated\: its kernels on this processor, slowly and with the same text; auto\: a checked GPU that can compute them, or else the processor]:NAME:(auto cpu cuda emulated)' \
        '--device-steps[steps that a device makes by itself before it waits for this machine\: plain ones, and trees of a draft model, EAGLE, MTP, Medusa, DFlash or DSpark; 0\: it waits after every pass]:N:_files' \
        '--draft-ahead[ranks of --draft-ranks draft after likely verdicts while the target verifies; auto\: where measured to pay]:WHEN:(auto on off)' \
        '--draft-ranks[ranks for draft models, each for a part of the sequences; 0\: they draft with the target]:N:_files' \
        '--dry-allowed-length[DRY\: shorter repetitions cost nothing]:LENGTH:_files' \
        '--dry-base[DRY\: how fast the penalty grows]:BASE:_files' \
        '--dry-multiplier[DRY\: a token that would go on a repetition of N tokens loses M * BASE^(N - LENGTH) of its logit; 0\: none]:M:_files' \
        '--dry-penalty-last-n[DRY\: tokens of prompt and output that are searched; -1\: all, 0\: none]:N:_files' \
        '--dry-sequence-breaker[DRY\: tokens with this text end repetitions; may be repeated; none\: no text does; without it a line break, a colon, a quotation mark and an asterisk]:TEXT:_files' \
        '--frequency-penalty[subtracted once per occurrence in the output]:F:_files' \
        '--gpu-layers[the target'\''s last layers that are on the device, its output head being one; auto\: as many as fit; or all]:N:_files' \
        '--ignore-eos[go on after the model'\''s end-of-text token]' \
        '--kernels[kernel table, such as reference or avx2; cuda_tc\: a GPU'\''s tensor cores; without it the fastest there is]:NAME:_files' \
        '--kv-cache-type[type of cached keys and values; auto\: bf16; q8_0\: 8 bits and a scale per 32 numbers; e4m3\: 8 bits]:TYPE:(auto f32 bf16 f16 e4m3 q8_0)' \
        '--kv-pages[pages of the KV cache; 0\: enough for a full batch, within a third of free memory]:N:_files' \
        '--logit-bias[added to the logit of a token; -inf forbids it; may be repeated]:ID=VALUE:_files' \
        '--lora[a LoRA adapter\: a folder of PEFT or a GGUF file, perhaps with \:SCALE behind it. With a name only requests that choose it use it, without one all do; may be given again]:[NAME=]PATH:_files' \
        '--max-batch[sequences that run together]:N:_files' \
        '--max-batch-rows[rows of one pass\: prompt tokens, pending tokens and drafted ones; at least --max-batch; 0\: what --prefill-chunk and a full batch with its drafts need]:N:_files' \
        '--max-tokens[tokens of output, at most; chat\: of one answer]:N:_files' \
        '--memory[most memory to use, such as 800M or 6G; layers that do not fit are read from the packed cache in every pass, ahead of the layer that needs them]:SIZE:_files' \
        '--min-p[keep tokens with at least this fraction of the likeliest one'\''s probability]:P:_files' \
        '--offline[fetch nothing, as HF_HUB_OFFLINE=1 does]' \
        '--packed-cache[folder for weights in the layout of the kernels\: written by the first start, mapped by later ones]:DIR:_files' \
        '--page-size[tokens per page of the KV cache]:N:_files' \
        '--pin[keep each thread on one processor; auto\: with several NUMA nodes and a thread for every processor]:WHEN:(auto on off)' \
        '--pipeline-parallel[groups of the target'\''s layers, each with --tensor-parallel ranks]:N:_files' \
        '--prefill-chunk[prompt tokens computed in one pass]:N:_files' \
        '--presence-penalty[subtracted once from tokens already in the output]:P:_files' \
        '--prompt-cache[folder for what prompts and answers have computed\: later starts read it where a prompt begins alike]:DIR:_files' \
        '--prompt-cache-size[most bytes in that folder, for all models together, such as 800M or 6G; the longest unused files go first]:SIZE:_files' \
        '--pull[fetch a model that is named and is not on this machine; without it a terminal asks first]' \
        '--rank-memory[processes of one machine that share a target exchange numbers in shared memory; off\: through MPI]:WHEN:(on off)' \
        '--repetition-penalty[divides positive logits of tokens seen in prompt or output, multiplies negative ones]:R:_files' \
        '--seed[seed of all randomness; the same seed gives the same text]:S:_files' \
        '--server[decode on a server of --remote-drafting, as in ws\://127.0.0.1\:8000, or wss\:// for TLS, and draft here; MODEL gives tokenizer and chat template]:URL:_files' \
        '--server-ca[with wss\://\: PEM file of certificates to trust beside the system'\''s own]:FILE:_files' \
        '--server-key-file[file with the key to show to --server, in its first line]:FILE:_files' \
        '--server-model[the model there, where --server has several]:NAME:_files' \
        '--server-offline[what to do while --server is out of reach; never\: wait for it; correct\: the drafter writes, and the server'\''s own text replaces what differs later; keep\: the drafter writes, and its text stays]:WAY:(never correct keep)' \
        '--server-offline-after[how long --server is waited for before the drafter writes alone]:SECONDS:_files' \
        '--server-states[numbers of the target'\''s states that --server sends for draft heads; q8 takes half of the bytes]:TYPE:(bf16 f16 q8)' \
        '--slide[where prompt and output fill the context, keep the first N tokens, drop the older half of the others and go on; -1\: the output ends there]:N:_files' \
        '--speculative[method,key=value,... or a YAML or JSON file\: auto, none, ngram, draft_target, ...; keys are listed in docs/reference/options.md; without it auto]:CONFIG:_files' \
        '--speculative-model[draft model or learned drafter; without --speculative what it is decides the method]:DIR:_files' \
        '--stop[end the output before this text; may be repeated]:TEXT:_files' \
        '--system[system message at the start of the conversation]:TEXT:_files' \
        '--temperature[0 is greedy\: always the likeliest token; serve\: where neither the request nor generation_config.json says]:T:_files' \
        '--tensor-parallel[ranks that share each layer of the target\: processes of mpirun, or else threads]:N:_files' \
        '--think[whether a model that can think first does so\: on, off, or the tokens that it may think; without it as its template decides; serve\: a request may say otherwise]:HOW:_files' \
        '--thinking-message[is written where the tokens of --think end, before the mark that closes the thinking]:TEXT:_files' \
        '--threads[threads; 0\: one per core]:N:_files' \
        '--top-k[keep the K likeliest tokens; 0\: all]:K:_files' \
        '--top-n-sigma[keep tokens within N standard deviations of all logits below the largest one; -1 or 0\: all]:N:_files' \
        '--top-p[keep the smallest set of likeliest tokens that reaches this probability]:P:_files' \
        '--typical-p[keep the tokens nearest to the expected information that together reach this probability]:P:_files' \
        '--weights[type the weights are held in; auto\: as stored, q8\: one scale per output, q4\: q4_0, f8\: E4M3 in blocks of 128]:TYPE:(auto f32 bf16 f8 q8_0 q8 q4)' \
        '--xtc-probability[how often the likeliest tokens are left out, but for the last that reaches --xtc-threshold]:P:_files' \
        '--xtc-threshold[the least probability of a token that --xtc-probability leaves out]:P:_files' \
        '*:file:_files' ;;
    score)
      _arguments \
        '--cache-dir[where measured costs of passes and the index of --corpus are kept from run to run; without it $XDG_CACHE_HOME/outrider or ~/.cache/outrider; none\: nowhere]:DIR:_files' \
        '--config[YAML file of options; command line and environment come before it]:FILE:_files' \
        '--cpu-experts[the target'\''s first layers of which the processor has the experts; auto\: as few as the device needs; or all]:N:_files' \
        '--ctx[longest sequence in tokens, as in 8192, 8k (8000) or 8K (8192); 0 or auto\: what the model was made for, or what memory holds of it]:N:_files' \
        '--device[machine that computes the networks; cuda\: a GPU of NVIDIA; emulated\: its kernels on this processor, slowly and with the same text; auto\: a checked GPU that can compute them, or else the processor]:NAME:(auto cpu cuda emulated)' \
        '--device-steps[steps that a device makes by itself before it waits for this machine\: plain ones, and trees of a draft model, EAGLE, MTP, Medusa, DFlash or DSpark; 0\: it waits after every pass]:N:_files' \
        '--draft-ahead[ranks of --draft-ranks draft after likely verdicts while the target verifies; auto\: where measured to pay]:WHEN:(auto on off)' \
        '--draft-ranks[ranks for draft models, each for a part of the sequences; 0\: they draft with the target]:N:_files' \
        '--gpu-layers[the target'\''s last layers that are on the device, its output head being one; auto\: as many as fit; or all]:N:_files' \
        '--json[print one JSON object]' \
        '--kernels[kernel table, such as reference or avx2; cuda_tc\: a GPU'\''s tensor cores; without it the fastest there is]:NAME:_files' \
        '--kv-cache-type[type of cached keys and values; auto\: bf16; q8_0\: 8 bits and a scale per 32 numbers; e4m3\: 8 bits]:TYPE:(auto f32 bf16 f16 e4m3 q8_0)' \
        '--kv-pages[pages of the KV cache; 0\: enough for a full batch, within a third of free memory]:N:_files' \
        '--lora[a LoRA adapter\: a folder of PEFT or a GGUF file, perhaps with \:SCALE behind it. With a name only requests that choose it use it, without one all do; may be given again]:[NAME=]PATH:_files' \
        '--max-batch[sequences that run together]:N:_files' \
        '--max-batch-rows[rows of one pass\: prompt tokens, pending tokens and drafted ones; at least --max-batch; 0\: what --prefill-chunk and a full batch with its drafts need]:N:_files' \
        '--memory[most memory to use, such as 800M or 6G; layers that do not fit are read from the packed cache in every pass, ahead of the layer that needs them]:SIZE:_files' \
        '--offline[fetch nothing, as HF_HUB_OFFLINE=1 does]' \
        '--packed-cache[folder for weights in the layout of the kernels\: written by the first start, mapped by later ones]:DIR:_files' \
        '--page-size[tokens per page of the KV cache]:N:_files' \
        '--pin[keep each thread on one processor; auto\: with several NUMA nodes and a thread for every processor]:WHEN:(auto on off)' \
        '--pipeline-parallel[groups of the target'\''s layers, each with --tensor-parallel ranks]:N:_files' \
        '--prefill-chunk[prompt tokens computed in one pass]:N:_files' \
        '--prompt-ids[the prompt as token ids, as in 1,2,3]:IDS:_files' \
        '--pull[fetch a model that is named and is not on this machine; without it a terminal asks first]' \
        '--rank-memory[processes of one machine that share a target exchange numbers in shared memory; off\: through MPI]:WHEN:(on off)' \
        '--tensor-parallel[ranks that share each layer of the target\: processes of mpirun, or else threads]:N:_files' \
        '--text-file[the text is the whole file]:FILE:_files' \
        '--threads[threads; 0\: one per core]:N:_files' \
        '--weights[type the weights are held in; auto\: as stored, q8\: one scale per output, q4\: q4_0, f8\: E4M3 in blocks of 128]:TYPE:(auto f32 bf16 f8 q8_0 q8 q4)' \
        '*:file:_files' ;;
    tokenize)
      _arguments \
        '--config[YAML file of options; command line and environment come before it]:FILE:_files' \
        '--file[the text is the whole file]:FILE:_files' \
        '--frequent[print the N most frequent tokens of the text, most frequent first, as a JSON array for speculative_token_map]:N:_files' \
        '--ids[token ids to turn into text, as in 1,2,3]:IDS:_files' \
        '--json[print one JSON object]' \
        '--offline[fetch nothing, as HF_HUB_OFFLINE=1 does]' \
        '--pull[fetch a model that is named and is not on this machine; without it a terminal asks first]' \
        '--text[text to turn into token ids; - reads standard input]:TEXT:_files' \
        '*:file:_files' ;;
    inspect)
      _arguments \
        '--cache-dir[where measured costs of passes and the index of --corpus are kept from run to run; without it $XDG_CACHE_HOME/outrider or ~/.cache/outrider; none\: nowhere]:DIR:_files' \
        '--config[YAML file of options; command line and environment come before it]:FILE:_files' \
        '--corpus[text that answers may repeat, or a folder of such texts, which Suffix and Auto draft from; .jsonl\: each line is a text; its index is built once and kept in --cache-dir; may be repeated]:FILE:_files' \
        '--cpu-experts[the target'\''s first layers of which the processor has the experts; auto\: as few as the device needs; or all]:N:_files' \
        '--ctx[longest sequence in tokens, as in 8192, 8k (8000) or 8K (8192); 0 or auto\: what the model was made for, or what memory holds of it]:N:_files' \
        '--device[machine that computes the networks; cuda\: a GPU of NVIDIA; emulated\: its kernels on this processor, slowly and with the same text; auto\: a checked GPU that can compute them, or else the processor]:NAME:(auto cpu cuda emulated)' \
        '--gpu-layers[the target'\''s last layers that are on the device, its output head being one; auto\: as many as fit; or all]:N:_files' \
        '--json[print one JSON object]' \
        '--kv-cache-type[type of cached keys and values; auto\: bf16; q8_0\: 8 bits and a scale per 32 numbers; e4m3\: 8 bits]:TYPE:(auto f32 bf16 f16 e4m3 q8_0)' \
        '--kv-pages[pages of the KV cache; 0\: enough for a full batch, within a third of free memory]:N:_files' \
        '--max-batch[sequences that run together]:N:_files' \
        '--max-batch-rows[rows of one pass\: prompt tokens, pending tokens and drafted ones; at least --max-batch; 0\: what --prefill-chunk and a full batch with its drafts need]:N:_files' \
        '--memory[most memory to use, such as 800M or 6G; layers that do not fit are read from the packed cache in every pass, ahead of the layer that needs them]:SIZE:_files' \
        '--offline[fetch nothing, as HF_HUB_OFFLINE=1 does]' \
        '--page-size[tokens per page of the KV cache]:N:_files' \
        '--prefill-chunk[prompt tokens computed in one pass]:N:_files' \
        '--pull[fetch a model that is named and is not on this machine; without it a terminal asks first]' \
        '--speculative[method,key=value,... or a YAML or JSON file\: auto, none, ngram, draft_target, ...; keys are listed in docs/reference/options.md; without it auto]:CONFIG:_files' \
        '*:file:_files' ;;
    bench)
      _arguments \
        '--acceptance[how drafts are accepted; coupled (same seed, same text as without speculation), rejection and block (same distribution) are lossless, typical and relaxed are not]:RULE:(coupled rejection block typical relaxed)' \
        '--batch[measure throughput with so many prompts running at once, as in 1,2,4,8, instead of prompt by prompt]:LIST:_files' \
        '--cache-dir[where measured costs of passes and the index of --corpus are kept from run to run; without it $XDG_CACHE_HOME/outrider or ~/.cache/outrider; none\: nowhere]:DIR:_files' \
        '--config[YAML file of options; command line and environment come before it]:FILE:_files' \
        '--context[with --rows\: tokens already in the KV cache; without it 512, or what fits]:N:_files' \
        '--corpus[text that answers may repeat, or a folder of such texts, which Suffix and Auto draft from; .jsonl\: each line is a text; its index is built once and kept in --cache-dir; may be repeated]:FILE:_files' \
        '--cpu-experts[the target'\''s first layers of which the processor has the experts; auto\: as few as the device needs; or all]:N:_files' \
        '--ctx[longest sequence in tokens, as in 8192, 8k (8000) or 8K (8192); 0 or auto\: what the model was made for, or what memory holds of it]:N:_files' \
        '--device[machine that computes the networks; cuda\: a GPU of NVIDIA; emulated\: its kernels on this processor, slowly and with the same text; auto\: a checked GPU that can compute them, or else the processor]:NAME:(auto cpu cuda emulated)' \
        '--device-steps[steps that a device makes by itself before it waits for this machine\: plain ones, and trees of a draft model, EAGLE, MTP, Medusa, DFlash or DSpark; 0\: it waits after every pass]:N:_files' \
        '--draft-ahead[ranks of --draft-ranks draft after likely verdicts while the target verifies; auto\: where measured to pay]:WHEN:(auto on off)' \
        '--draft-ranks[ranks for draft models, each for a part of the sequences; 0\: they draft with the target]:N:_files' \
        '--draft-shape[with --shape\: draft with random weights of this shape, such as llama-68m]:NAME:_files' \
        '--drafters[with --all\: folder of draft models and learned drafters; may be repeated; without it the folder that MODEL lies in]:DIR:_files' \
        '--dry-allowed-length[DRY\: shorter repetitions cost nothing]:LENGTH:_files' \
        '--dry-base[DRY\: how fast the penalty grows]:BASE:_files' \
        '--dry-multiplier[DRY\: a token that would go on a repetition of N tokens loses M * BASE^(N - LENGTH) of its logit; 0\: none]:M:_files' \
        '--dry-penalty-last-n[DRY\: tokens of prompt and output that are searched; -1\: all, 0\: none]:N:_files' \
        '--dry-sequence-breaker[DRY\: tokens with this text end repetitions; may be repeated; none\: no text does; without it a line break, a colon, a quotation mark and an asterisk]:TEXT:_files' \
        '--frequency-penalty[subtracted once per occurrence in the output]:F:_files' \
        '--gpu-layers[the target'\''s last layers that are on the device, its output head being one; auto\: as many as fit; or all]:N:_files' \
        '--ignore-eos[go on after the model'\''s end-of-text token]' \
        '--json[print one JSON object]' \
        '--kernels[kernel table, such as reference or avx2; cuda_tc\: a GPU'\''s tensor cores; without it the fastest there is]:NAME:_files' \
        '--kv-cache-type[type of cached keys and values; auto\: bf16; q8_0\: 8 bits and a scale per 32 numbers; e4m3\: 8 bits]:TYPE:(auto f32 bf16 f16 e4m3 q8_0)' \
        '--kv-pages[pages of the KV cache; 0\: enough for a full batch, within a third of free memory]:N:_files' \
        '--limit[prompts used, evenly spaced over the file; 0\: all, or 6 for doctor]:N:_files' \
        '--logit-bias[added to the logit of a token; -inf forbids it; may be repeated]:ID=VALUE:_files' \
        '--lora[a LoRA adapter\: a folder of PEFT or a GGUF file, perhaps with \:SCALE behind it. With a name only requests that choose it use it, without one all do; may be given again]:[NAME=]PATH:_files' \
        '--max-batch[sequences that run together]:N:_files' \
        '--max-batch-rows[rows of one pass\: prompt tokens, pending tokens and drafted ones; at least --max-batch; 0\: what --prefill-chunk and a full batch with its drafts need]:N:_files' \
        '--max-tokens[tokens of output, at most; chat\: of one answer]:N:_files' \
        '--memory[most memory to use, such as 800M or 6G; layers that do not fit are read from the packed cache in every pass, ahead of the layer that needs them]:SIZE:_files' \
        '--min-p[keep tokens with at least this fraction of the likeliest one'\''s probability]:P:_files' \
        '--nodes[with --all\: drafted nodes of one tree, at most; a quarter of them, 8 at most, are levels]:N:_files' \
        '--offline[fetch nothing, as HF_HUB_OFFLINE=1 does]' \
        '--output[with --all\: write the table as an HTML page, too, or as JSON if FILE ends in .json; replaced after every drafter, so that it outlasts an interruption]:FILE:_files' \
        '--packed-cache[folder for weights in the layout of the kernels\: written by the first start, mapped by later ones]:DIR:_files' \
        '--page-size[tokens per page of the KV cache]:N:_files' \
        '--pin[keep each thread on one processor; auto\: with several NUMA nodes and a thread for every processor]:WHEN:(auto on off)' \
        '--pipeline-parallel[groups of the target'\''s layers, each with --tensor-parallel ranks]:N:_files' \
        '--prefill-chunk[prompt tokens computed in one pass]:N:_files' \
        '--presence-penalty[subtracted once from tokens already in the output]:P:_files' \
        '--profile[with --rows\: also the time of each operation of a pass, beside the read rate and the peak of products]' \
        '--prompt-lengths[measure the time to the first token of random prompts of so many tokens, as in 64,512,4096]:LIST:_files' \
        '--prompts[JSONL file with prompt, messages, turns or question per line; without it built-in prompts]:FILE:_files' \
        '--pull[fetch a model that is named and is not on this machine; without it a terminal asks first]' \
        '--rank-memory[processes of one machine that share a target exchange numbers in shared memory; off\: through MPI]:WHEN:(on off)' \
        '--repetition-penalty[divides positive logits of tokens seen in prompt or output, multiplies negative ones]:R:_files' \
        '--rows[time single passes of so many rows, as in 1,2,4,8, beside a plain read of the weights'\'' bytes; 16x3\: 16 rows that are a tree whose nodes have 3 children each]:LIST:_files' \
        '--runs[repetitions of each prompt, plain and speculative in turn, or rounds over the row counts; 0\: 3 repetitions or 10 rounds]:N:_files' \
        '--seed[seed of all randomness; the same seed gives the same text]:S:_files' \
        '--shape[instead of MODEL\: random weights of this shape, such as llama-1b, or of its first layers, such as llama-1b@4, in the type of --weights (auto\: bf16)]:NAME:_files' \
        '--skip-long[leave out prompts that do not fit into the context, and say how many; without it they are an error]' \
        '--slide[where prompt and output fill the context, keep the first N tokens, drop the older half of the others and go on; -1\: the output ends there]:N:_files' \
        '--speculative[method,key=value,... or a YAML or JSON file\: auto, none, ngram, draft_target, ...; keys are listed in docs/reference/options.md; without it auto]:CONFIG:_files' \
        '--speculative-model[draft model or learned drafter; without --speculative what it is decides the method]:DIR:_files' \
        '--stop[end the output before this text; may be repeated]:TEXT:_files' \
        '--synthetic-acceptance[replace each drafted token, with this probability by the target'\''s own, else by another\: times a drafter as if it were so good]:P:_files' \
        '--temperature[0 is greedy\: always the likeliest token; serve\: where neither the request nor generation_config.json says]:T:_files' \
        '--tensor-parallel[ranks that share each layer of the target\: processes of mpirun, or else threads]:N:_files' \
        '--threads[threads; 0\: one per core]:N:_files' \
        '--top-k[keep the K likeliest tokens; 0\: all]:K:_files' \
        '--top-n-sigma[keep tokens within N standard deviations of all logits below the largest one; -1 or 0\: all]:N:_files' \
        '--top-p[keep the smallest set of likeliest tokens that reaches this probability]:P:_files' \
        '--trace[write an HTML page with the timeline, the trees and the acceptance of every step; replaces FILE]:FILE:_files' \
        '--typical-p[keep the tokens nearest to the expected information that together reach this probability]:P:_files' \
        '--weights[type the weights are held in; auto\: as stored, q8\: one scale per output, q4\: q4_0, f8\: E4M3 in blocks of 128]:TYPE:(auto f32 bf16 f8 q8_0 q8 q4)' \
        '--xtc-probability[how often the likeliest tokens are left out, but for the last that reaches --xtc-threshold]:P:_files' \
        '--xtc-threshold[the least probability of a token that --xtc-probability leaves out]:P:_files' \
        '*:file:_files' ;;
    verify-lossless)
      _arguments \
        '--acceptance[how drafts are accepted; coupled (same seed, same text as without speculation), rejection and block (same distribution) are lossless, typical and relaxed are not]:RULE:(coupled rejection block typical relaxed)' \
        '--cache-dir[where measured costs of passes and the index of --corpus are kept from run to run; without it $XDG_CACHE_HOME/outrider or ~/.cache/outrider; none\: nowhere]:DIR:_files' \
        '--compare-kernels[compare texts and log-probabilities of all kernel tables that promise the same bits, and of --device]' \
        '--config[YAML file of options; command line and environment come before it]:FILE:_files' \
        '--corpus[text that answers may repeat, or a folder of such texts, which Suffix and Auto draft from; .jsonl\: each line is a text; its index is built once and kept in --cache-dir; may be repeated]:FILE:_files' \
        '--cpu-experts[the target'\''s first layers of which the processor has the experts; auto\: as few as the device needs; or all]:N:_files' \
        '--ctx[longest sequence in tokens, as in 8192, 8k (8000) or 8K (8192); 0 or auto\: what the model was made for, or what memory holds of it]:N:_files' \
        '--device[machine that computes the networks; cuda\: a GPU of NVIDIA; emulated\: its kernels on this processor, slowly and with the same text; auto\: a checked GPU that can compute them, or else the processor]:NAME:(auto cpu cuda emulated)' \
        '--device-steps[steps that a device makes by itself before it waits for this machine\: plain ones, and trees of a draft model, EAGLE, MTP, Medusa, DFlash or DSpark; 0\: it waits after every pass]:N:_files' \
        '--draft-ahead[ranks of --draft-ranks draft after likely verdicts while the target verifies; auto\: where measured to pay]:WHEN:(auto on off)' \
        '--draft-ranks[ranks for draft models, each for a part of the sequences; 0\: they draft with the target]:N:_files' \
        '--dry-allowed-length[DRY\: shorter repetitions cost nothing]:LENGTH:_files' \
        '--dry-base[DRY\: how fast the penalty grows]:BASE:_files' \
        '--dry-multiplier[DRY\: a token that would go on a repetition of N tokens loses M * BASE^(N - LENGTH) of its logit; 0\: none]:M:_files' \
        '--dry-penalty-last-n[DRY\: tokens of prompt and output that are searched; -1\: all, 0\: none]:N:_files' \
        '--dry-sequence-breaker[DRY\: tokens with this text end repetitions; may be repeated; none\: no text does; without it a line break, a colon, a quotation mark and an asterisk]:TEXT:_files' \
        '--frequency-penalty[subtracted once per occurrence in the output]:F:_files' \
        '--gpu-layers[the target'\''s last layers that are on the device, its output head being one; auto\: as many as fit; or all]:N:_files' \
        '--ignore-eos[go on after the model'\''s end-of-text token]' \
        '--json[print one JSON object]' \
        '--kernels[kernel table, such as reference or avx2; cuda_tc\: a GPU'\''s tensor cores; without it the fastest there is]:NAME:_files' \
        '--kv-cache-type[type of cached keys and values; auto\: bf16; q8_0\: 8 bits and a scale per 32 numbers; e4m3\: 8 bits]:TYPE:(auto f32 bf16 f16 e4m3 q8_0)' \
        '--kv-pages[pages of the KV cache; 0\: enough for a full batch, within a third of free memory]:N:_files' \
        '--limit[prompts used, evenly spaced over the file; 0\: all, or 6 for doctor]:N:_files' \
        '--logit-bias[added to the logit of a token; -inf forbids it; may be repeated]:ID=VALUE:_files' \
        '--lora[a LoRA adapter\: a folder of PEFT or a GGUF file, perhaps with \:SCALE behind it. With a name only requests that choose it use it, without one all do; may be given again]:[NAME=]PATH:_files' \
        '--max-batch[sequences that run together]:N:_files' \
        '--max-batch-rows[rows of one pass\: prompt tokens, pending tokens and drafted ones; at least --max-batch; 0\: what --prefill-chunk and a full batch with its drafts need]:N:_files' \
        '--max-tokens[tokens of output, at most; chat\: of one answer]:N:_files' \
        '--memory[most memory to use, such as 800M or 6G; layers that do not fit are read from the packed cache in every pass, ahead of the layer that needs them]:SIZE:_files' \
        '--min-p[keep tokens with at least this fraction of the likeliest one'\''s probability]:P:_files' \
        '--offline[fetch nothing, as HF_HUB_OFFLINE=1 does]' \
        '--packed-cache[folder for weights in the layout of the kernels\: written by the first start, mapped by later ones]:DIR:_files' \
        '--page-size[tokens per page of the KV cache]:N:_files' \
        '--pin[keep each thread on one processor; auto\: with several NUMA nodes and a thread for every processor]:WHEN:(auto on off)' \
        '--pipeline-parallel[groups of the target'\''s layers, each with --tensor-parallel ranks]:N:_files' \
        '--prefill-chunk[prompt tokens computed in one pass]:N:_files' \
        '--presence-penalty[subtracted once from tokens already in the output]:P:_files' \
        '--prompts[JSONL file with prompt, messages, turns or question per line; without it built-in prompts]:FILE:_files' \
        '--pull[fetch a model that is named and is not on this machine; without it a terminal asks first]' \
        '--rank-memory[processes of one machine that share a target exchange numbers in shared memory; off\: through MPI]:WHEN:(on off)' \
        '--repetition-penalty[divides positive logits of tokens seen in prompt or output, multiplies negative ones]:R:_files' \
        '--seed[seed of all randomness; the same seed gives the same text]:S:_files' \
        '--skip-long[leave out prompts that do not fit into the context, and say how many; without it they are an error]' \
        '--slide[where prompt and output fill the context, keep the first N tokens, drop the older half of the others and go on; -1\: the output ends there]:N:_files' \
        '--speculative[method,key=value,... or a YAML or JSON file\: auto, none, ngram, draft_target, ...; keys are listed in docs/reference/options.md; without it auto]:CONFIG:_files' \
        '--speculative-model[draft model or learned drafter; without --speculative what it is decides the method]:DIR:_files' \
        '--stop[end the output before this text; may be repeated]:TEXT:_files' \
        '--temperature[0 is greedy\: always the likeliest token; serve\: where neither the request nor generation_config.json says]:T:_files' \
        '--tensor-parallel[ranks that share each layer of the target\: processes of mpirun, or else threads]:N:_files' \
        '--threads[threads; 0\: one per core]:N:_files' \
        '--top-k[keep the K likeliest tokens; 0\: all]:K:_files' \
        '--top-n-sigma[keep tokens within N standard deviations of all logits below the largest one; -1 or 0\: all]:N:_files' \
        '--top-p[keep the smallest set of likeliest tokens that reaches this probability]:P:_files' \
        '--typical-p[keep the tokens nearest to the expected information that together reach this probability]:P:_files' \
        '--weights[type the weights are held in; auto\: as stored, q8\: one scale per output, q4\: q4_0, f8\: E4M3 in blocks of 128]:TYPE:(auto f32 bf16 f8 q8_0 q8 q4)' \
        '--xtc-probability[how often the likeliest tokens are left out, but for the last that reaches --xtc-threshold]:P:_files' \
        '--xtc-threshold[the least probability of a token that --xtc-probability leaves out]:P:_files' \
        '*:file:_files' ;;
    doctor)
      _arguments \
        '--acceptance[how drafts are accepted; coupled (same seed, same text as without speculation), rejection and block (same distribution) are lossless, typical and relaxed are not]:RULE:(coupled rejection block typical relaxed)' \
        '--cache-dir[where measured costs of passes and the index of --corpus are kept from run to run; without it $XDG_CACHE_HOME/outrider or ~/.cache/outrider; none\: nowhere]:DIR:_files' \
        '--config[YAML file of options; command line and environment come before it]:FILE:_files' \
        '--corpus[text that answers may repeat, or a folder of such texts, which Suffix and Auto draft from; .jsonl\: each line is a text; its index is built once and kept in --cache-dir; may be repeated]:FILE:_files' \
        '--cpu-experts[the target'\''s first layers of which the processor has the experts; auto\: as few as the device needs; or all]:N:_files' \
        '--ctx[longest sequence in tokens, as in 8192, 8k (8000) or 8K (8192); 0 or auto\: what the model was made for, or what memory holds of it]:N:_files' \
        '--device[machine that computes the networks; cuda\: a GPU of NVIDIA; emulated\: its kernels on this processor, slowly and with the same text; auto\: a checked GPU that can compute them, or else the processor]:NAME:(auto cpu cuda emulated)' \
        '--device-steps[steps that a device makes by itself before it waits for this machine\: plain ones, and trees of a draft model, EAGLE, MTP, Medusa, DFlash or DSpark; 0\: it waits after every pass]:N:_files' \
        '--draft-ahead[ranks of --draft-ranks draft after likely verdicts while the target verifies; auto\: where measured to pay]:WHEN:(auto on off)' \
        '--draft-ranks[ranks for draft models, each for a part of the sequences; 0\: they draft with the target]:N:_files' \
        '--dry-allowed-length[DRY\: shorter repetitions cost nothing]:LENGTH:_files' \
        '--dry-base[DRY\: how fast the penalty grows]:BASE:_files' \
        '--dry-multiplier[DRY\: a token that would go on a repetition of N tokens loses M * BASE^(N - LENGTH) of its logit; 0\: none]:M:_files' \
        '--dry-penalty-last-n[DRY\: tokens of prompt and output that are searched; -1\: all, 0\: none]:N:_files' \
        '--dry-sequence-breaker[DRY\: tokens with this text end repetitions; may be repeated; none\: no text does; without it a line break, a colon, a quotation mark and an asterisk]:TEXT:_files' \
        '--frequency-penalty[subtracted once per occurrence in the output]:F:_files' \
        '--gpu-layers[the target'\''s last layers that are on the device, its output head being one; auto\: as many as fit; or all]:N:_files' \
        '--ignore-eos[go on after the model'\''s end-of-text token]' \
        '--json[print one JSON object]' \
        '--kernels[kernel table, such as reference or avx2; cuda_tc\: a GPU'\''s tensor cores; without it the fastest there is]:NAME:_files' \
        '--kv-cache-type[type of cached keys and values; auto\: bf16; q8_0\: 8 bits and a scale per 32 numbers; e4m3\: 8 bits]:TYPE:(auto f32 bf16 f16 e4m3 q8_0)' \
        '--kv-pages[pages of the KV cache; 0\: enough for a full batch, within a third of free memory]:N:_files' \
        '--limit[prompts used, evenly spaced over the file; 0\: all, or 6 for doctor]:N:_files' \
        '--logit-bias[added to the logit of a token; -inf forbids it; may be repeated]:ID=VALUE:_files' \
        '--lora[a LoRA adapter\: a folder of PEFT or a GGUF file, perhaps with \:SCALE behind it. With a name only requests that choose it use it, without one all do; may be given again]:[NAME=]PATH:_files' \
        '--max-batch[sequences that run together]:N:_files' \
        '--max-batch-rows[rows of one pass\: prompt tokens, pending tokens and drafted ones; at least --max-batch; 0\: what --prefill-chunk and a full batch with its drafts need]:N:_files' \
        '--max-tokens[tokens of output, at most; chat\: of one answer]:N:_files' \
        '--memory[most memory to use, such as 800M or 6G; layers that do not fit are read from the packed cache in every pass, ahead of the layer that needs them]:SIZE:_files' \
        '--min-p[keep tokens with at least this fraction of the likeliest one'\''s probability]:P:_files' \
        '--offline[fetch nothing, as HF_HUB_OFFLINE=1 does]' \
        '--packed-cache[folder for weights in the layout of the kernels\: written by the first start, mapped by later ones]:DIR:_files' \
        '--page-size[tokens per page of the KV cache]:N:_files' \
        '--pin[keep each thread on one processor; auto\: with several NUMA nodes and a thread for every processor]:WHEN:(auto on off)' \
        '--pipeline-parallel[groups of the target'\''s layers, each with --tensor-parallel ranks]:N:_files' \
        '--prefill-chunk[prompt tokens computed in one pass]:N:_files' \
        '--presence-penalty[subtracted once from tokens already in the output]:P:_files' \
        '--prompts[JSONL file with prompt, messages, turns or question per line; without it built-in prompts]:FILE:_files' \
        '--pull[fetch a model that is named and is not on this machine; without it a terminal asks first]' \
        '--rank-memory[processes of one machine that share a target exchange numbers in shared memory; off\: through MPI]:WHEN:(on off)' \
        '--repetition-penalty[divides positive logits of tokens seen in prompt or output, multiplies negative ones]:R:_files' \
        '--seed[seed of all randomness; the same seed gives the same text]:S:_files' \
        '--skip-long[leave out prompts that do not fit into the context, and say how many; without it they are an error]' \
        '--slide[where prompt and output fill the context, keep the first N tokens, drop the older half of the others and go on; -1\: the output ends there]:N:_files' \
        '--speculative[method,key=value,... or a YAML or JSON file\: auto, none, ngram, draft_target, ...; keys are listed in docs/reference/options.md; without it auto]:CONFIG:_files' \
        '--speculative-model[draft model or learned drafter; without --speculative what it is decides the method]:DIR:_files' \
        '--stop[end the output before this text; may be repeated]:TEXT:_files' \
        '--temperature[0 is greedy\: always the likeliest token; serve\: where neither the request nor generation_config.json says]:T:_files' \
        '--tensor-parallel[ranks that share each layer of the target\: processes of mpirun, or else threads]:N:_files' \
        '--threads[threads; 0\: one per core]:N:_files' \
        '--top-k[keep the K likeliest tokens; 0\: all]:K:_files' \
        '--top-n-sigma[keep tokens within N standard deviations of all logits below the largest one; -1 or 0\: all]:N:_files' \
        '--top-p[keep the smallest set of likeliest tokens that reaches this probability]:P:_files' \
        '--typical-p[keep the tokens nearest to the expected information that together reach this probability]:P:_files' \
        '--weights[type the weights are held in; auto\: as stored, q8\: one scale per output, q4\: q4_0, f8\: E4M3 in blocks of 128]:TYPE:(auto f32 bf16 f8 q8_0 q8 q4)' \
        '--xtc-probability[how often the likeliest tokens are left out, but for the last that reaches --xtc-threshold]:P:_files' \
        '--xtc-threshold[the least probability of a token that --xtc-probability leaves out]:P:_files' \
        '*:file:_files' ;;
    serve)
      _arguments \
        '--acceptance[how drafts are accepted; coupled (same seed, same text as without speculation), rejection and block (same distribution) are lossless, typical and relaxed are not]:RULE:(coupled rejection block typical relaxed)' \
        '--allowed-host[a name under which clients may reach the server, beside the names of this machine; may be repeated]:NAME:_files' \
        '--api-key[keys that requests may show, separated by commas; other users of the machine see them in the list of processes, so --api-key-file is better; may be repeated]:KEY:_files' \
        '--api-key-file[keys, one per line, that requests must show; read again on SIGHUP; not readable by others]:FILE:_files' \
        '--audit-log[append what operators and keys do, and who is refused, a JSON object a line; opened again on SIGHUP]:FILE:_files' \
        '--batch-beside[with --batch-folder\: requests of batches that may run beside others, and slow them]:N:_files' \
        '--batch-folder[serve OpenAI'\''s Files and Batch API, /v1/files and /v1/batches; their files lie in this folder]:DIR:_files' \
        '--batch-folder-size[with --batch-folder\: the size of all files together; beyond it uploads are refused]:MIB:_files' \
        '--cache-dir[where measured costs of passes and the index of --corpus are kept from run to run; without it $XDG_CACHE_HOME/outrider or ~/.cache/outrider; none\: nowhere]:DIR:_files' \
        '--chat-page[whether GET / is the chat page]:WHEN:(on off)' \
        '--chat-template[a Jinja template for chats in place of the model'\''s]:FILE:_files' \
        '--chat-template-kwargs[variables of the template, as in {"enable_thinking"\: false}; serve\: a request'\''s own come before]:JSON:_files' \
        '--config[YAML file of options; command line and environment come before it]:FILE:_files' \
        '--corpus[text that answers may repeat, or a folder of such texts, which Suffix and Auto draft from; .jsonl\: each line is a text; its index is built once and kept in --cache-dir; may be repeated]:FILE:_files' \
        '--cors-origin[let pages from there call, as in https\://example.org; *\: from anywhere; several are separated by commas or a list in JSON; may be repeated]:ORIGIN:_files' \
        '--cpu-experts[the target'\''s first layers of which the processor has the experts; auto\: as few as the device needs; or all]:N:_files' \
        '--ctx[longest sequence in tokens, as in 8192, 8k (8000) or 8K (8192); 0 or auto\: what the model was made for, or what memory holds of it]:N:_files' \
        '--device[machine that computes the networks; cuda\: a GPU of NVIDIA; emulated\: its kernels on this processor, slowly and with the same text; auto\: a checked GPU that can compute them, or else the processor]:NAME:(auto cpu cuda emulated)' \
        '--device-steps[steps that a device makes by itself before it waits for this machine\: plain ones, and trees of a draft model, EAGLE, MTP, Medusa, DFlash or DSpark; 0\: it waits after every pass]:N:_files' \
        '--draft-ahead[ranks of --draft-ranks draft after likely verdicts while the target verifies; auto\: where measured to pay]:WHEN:(auto on off)' \
        '--draft-ranks[ranks for draft models, each for a part of the sequences; 0\: they draft with the target]:N:_files' \
        '--drain-timeout[how long running requests may go on after SIGTERM]:SECONDS:_files' \
        '--dry-allowed-length[DRY\: shorter repetitions cost nothing]:LENGTH:_files' \
        '--dry-base[DRY\: how fast the penalty grows]:BASE:_files' \
        '--dry-multiplier[DRY\: a token that would go on a repetition of N tokens loses M * BASE^(N - LENGTH) of its logit; 0\: none]:M:_files' \
        '--dry-penalty-last-n[DRY\: tokens of prompt and output that are searched; -1\: all, 0\: none]:N:_files' \
        '--dry-sequence-breaker[DRY\: tokens with this text end repetitions; may be repeated; none\: no text does; without it a line break, a colon, a quotation mark and an asterisk]:TEXT:_files' \
        '--frequency-penalty[subtracted once per occurrence in the output]:F:_files' \
        '--gpu-layers[the target'\''s last layers that are on the device, its output head being one; auto\: as many as fit; or all]:N:_files' \
        '--host[address to listen on; any but a loopback one needs --api-key-file; a path, as in /run/outrider.sock or unix\:NAME, is a UNIX socket]:ADDRESS:_files' \
        '--idle-unload[with --models\: a model without requests for this long is unloaded; 0\: only where memory is needed]:SECONDS:_files' \
        '--kernels[kernel table, such as reference or avx2; cuda_tc\: a GPU'\''s tensor cores; without it the fastest there is]:NAME:_files' \
        '--kv-cache-type[type of cached keys and values; auto\: bf16; q8_0\: 8 bits and a scale per 32 numbers; e4m3\: 8 bits]:TYPE:(auto f32 bf16 f16 e4m3 q8_0)' \
        '--kv-pages[pages of the KV cache; 0\: enough for a full batch, within a third of free memory]:N:_files' \
        '--lora[a LoRA adapter\: a folder of PEFT or a GGUF file, perhaps with \:SCALE behind it. With a name only requests that choose it use it, without one all do; may be given again]:[NAME=]PATH:_files' \
        '--lora-folder[clients may load and unload the adapters in this folder while the server runs]:DIR:_files' \
        '--max-batch[sequences that run together]:N:_files' \
        '--max-batch-rows[rows of one pass\: prompt tokens, pending tokens and drafted ones; at least --max-batch; 0\: what --prefill-chunk and a full batch with its drafts need]:N:_files' \
        '--max-connections[open connections; more are closed]:N:_files' \
        '--max-connections-per-address[open connections of one client address]:N:_files' \
        '--max-drafting-sessions[with --remote-drafting\: clients at a time, those included whose connection broke within the last minute]:N:_files' \
        '--max-drafting-sessions-per-key[with --remote-drafting\: the drafting sessions that one key may have, or clients without a key]:N:_files' \
        '--max-queue[requests that wait beyond the batch; more are refused with 429]:N:_files' \
        '--max-running-per-key[requests of one key at a time, waiting ones included; more are refused with 429; 0\: any number]:N:_files' \
        '--max-tokens[output of a request that names no number of tokens, at most; -1\: the rest of the context]:N:_files' \
        '--max-tokens-limit[output that a request may ask for, at most; more is refused with 400; 0\: what the context holds]:N:_files' \
        '--memory[most memory to use, such as 800M or 6G; layers that do not fit are read from the packed cache in every pass, ahead of the layer that needs them]:SIZE:_files' \
        '--min-p[keep tokens with at least this fraction of the likeliest one'\''s probability]:P:_files' \
        '--models[serve several models by name, each loaded when asked for; all, as without MODEL\: every one on this machine, or a folder of models, or a list in YAML; read again on SIGHUP]:WHERE:_files' \
        '--models-memory[with --models\: memory for all models that are loaded, such as 24G; the one that was used least recently leaves for another; without it nine tenths of what is free at the start]:SIZE:_files' \
        '--no-log-routes[routes whose requests get no line in the log, as in /health,/metrics; may be repeated]:ROUTES:_files' \
        '--offline[fetch nothing, as HF_HUB_OFFLINE=1 does]' \
        '--otlp-traces-endpoint[send a trace of every request to this collector of OpenTelemetry, such as http\://127.0.0.1\:4318, or https for TLS; OTEL_EXPORTER_OTLP_HEADERS and _CERTIFICATE count]:URL:_files' \
        '--packed-cache[folder for weights in the layout of the kernels\: written by the first start, mapped by later ones]:DIR:_files' \
        '--page-size[tokens per page of the KV cache]:N:_files' \
        '--pin[keep each thread on one processor; auto\: with several NUMA nodes and a thread for every processor]:WHEN:(auto on off)' \
        '--pin-model[with --models\: load this model at the start and keep it; may be repeated]:MODEL:_files' \
        '--pipeline-parallel[groups of the target'\''s layers, each with --tensor-parallel ranks]:N:_files' \
        '--pooling[what /v1/embeddings takes of a text'\''s states, its last one or their mean; rank\: the model is a reranker, such as Qwen3-Reranker, and answers /v1/rerank instead]:WHAT:(last mean rank)' \
        '--port[port to listen on; 0\: any that is free]:N:_files' \
        '--prefill-chunk[prompt tokens computed in one pass]:N:_files' \
        '--presence-penalty[subtracted once from tokens already in the output]:P:_files' \
        '--prompt-cache[folder for what prompts and answers have computed\: later starts read it where a prompt begins alike]:DIR:_files' \
        '--prompt-cache-size[most bytes in that folder, for all models together, such as 800M or 6G; the longest unused files go first]:SIZE:_files' \
        '--pull[fetch a model that is named and is not on this machine; without it a terminal asks first]' \
        '--rank-memory[processes of one machine that share a target exchange numbers in shared memory; off\: through MPI]:WHEN:(on off)' \
        '--remote-drafting[verify for clients that draft elsewhere\: outrider generate or chat --server]' \
        '--repetition-penalty[divides positive logits of tokens seen in prompt or output, multiplies negative ones]:R:_files' \
        '--request-timeout[a request that takes longer ends with an error (504 request_timeout); 0\: it may take any time]:SECONDS:_files' \
        '--requests-per-minute-per-key[requests that one key may begin in a minute; more are refused with 429; 0\: any number]:N:_files' \
        '--response-memory[memory for the conversations of /v1/responses; the oldest are forgotten; 0 keeps none]:MIB:_files' \
        '--root-path[a path that a proxy leaves before the own paths of the server, as in /llm; paths without it are served, too]:PATH:_files' \
        '--served-model-name[the model'\''s names in the API, separated by commas; answers have the first one; without it the name of its folder or file]:NAME:_files' \
        '--slot-folder[folder where POST /slots/{id}?action=save keeps the text of a slot by name, and restore finds it]:DIR:_files' \
        '--speculative[method,key=value,... or a YAML or JSON file\: auto, none, ngram, draft_target, ...; keys are listed in docs/reference/options.md; without it auto]:CONFIG:_files' \
        '--speculative-model[draft model or learned drafter; without --speculative what it is decides the method]:DIR:_files' \
        '--ssl-certfile[speak TLS with this certificate chain in PEM; read again on SIGHUP]:FILE:_files' \
        '--ssl-keyfile[private key of --ssl-certfile, not readable by others; without it in the same file]:FILE:_files' \
        '--temperature[0 is greedy\: always the likeliest token; serve\: where neither the request nor generation_config.json says]:T:_files' \
        '--tensor-parallel[ranks that share each layer of the target\: processes of mpirun, or else threads]:N:_files' \
        '--think[whether a model that can think first does so\: on, off, or the tokens that it may think; without it as its template decides; serve\: a request may say otherwise]:HOW:_files' \
        '--thinking-message[is written where the tokens of --think end, before the mark that closes the thinking]:TEXT:_files' \
        '--threads[threads; 0\: one per core]:N:_files' \
        '--tokens-per-minute-per-key[tokens of prompts and outputs that one key may have in a minute; 0\: any number]:N:_files' \
        '--top-k[keep the K likeliest tokens; 0\: all]:K:_files' \
        '--top-n-sigma[keep tokens within N standard deviations of all logits below the largest one; -1 or 0\: all]:N:_files' \
        '--top-p[keep the smallest set of likeliest tokens that reaches this probability]:P:_files' \
        '--typical-p[keep the tokens nearest to the expected information that together reach this probability]:P:_files' \
        '--weights[type the weights are held in; auto\: as stored, q8\: one scale per output, q4\: q4_0, f8\: E4M3 in blocks of 128]:TYPE:(auto f32 bf16 f8 q8_0 q8 q4)' \
        '--xtc-probability[how often the likeliest tokens are left out, but for the last that reaches --xtc-threshold]:P:_files' \
        '--xtc-threshold[the least probability of a token that --xtc-probability leaves out]:P:_files' \
        '*:file:_files' ;;
    batch)
      _arguments \
        '--acceptance[how drafts are accepted; coupled (same seed, same text as without speculation), rejection and block (same distribution) are lossless, typical and relaxed are not]:RULE:(coupled rejection block typical relaxed)' \
        '--cache-dir[where measured costs of passes and the index of --corpus are kept from run to run; without it $XDG_CACHE_HOME/outrider or ~/.cache/outrider; none\: nowhere]:DIR:_files' \
        '--chat-template[a Jinja template for chats in place of the model'\''s]:FILE:_files' \
        '--chat-template-kwargs[variables of the template, as in {"enable_thinking"\: false}; serve\: a request'\''s own come before]:JSON:_files' \
        '--config[YAML file of options; command line and environment come before it]:FILE:_files' \
        '--corpus[text that answers may repeat, or a folder of such texts, which Suffix and Auto draft from; .jsonl\: each line is a text; its index is built once and kept in --cache-dir; may be repeated]:FILE:_files' \
        '--cpu-experts[the target'\''s first layers of which the processor has the experts; auto\: as few as the device needs; or all]:N:_files' \
        '--ctx[longest sequence in tokens, as in 8192, 8k (8000) or 8K (8192); 0 or auto\: what the model was made for, or what memory holds of it]:N:_files' \
        '--device[machine that computes the networks; cuda\: a GPU of NVIDIA; emulated\: its kernels on this processor, slowly and with the same text; auto\: a checked GPU that can compute them, or else the processor]:NAME:(auto cpu cuda emulated)' \
        '--device-steps[steps that a device makes by itself before it waits for this machine\: plain ones, and trees of a draft model, EAGLE, MTP, Medusa, DFlash or DSpark; 0\: it waits after every pass]:N:_files' \
        '--draft-ahead[ranks of --draft-ranks draft after likely verdicts while the target verifies; auto\: where measured to pay]:WHEN:(auto on off)' \
        '--draft-ranks[ranks for draft models, each for a part of the sequences; 0\: they draft with the target]:N:_files' \
        '--dry-allowed-length[DRY\: shorter repetitions cost nothing]:LENGTH:_files' \
        '--dry-base[DRY\: how fast the penalty grows]:BASE:_files' \
        '--dry-multiplier[DRY\: a token that would go on a repetition of N tokens loses M * BASE^(N - LENGTH) of its logit; 0\: none]:M:_files' \
        '--dry-penalty-last-n[DRY\: tokens of prompt and output that are searched; -1\: all, 0\: none]:N:_files' \
        '--dry-sequence-breaker[DRY\: tokens with this text end repetitions; may be repeated; none\: no text does; without it a line break, a colon, a quotation mark and an asterisk]:TEXT:_files' \
        '--frequency-penalty[subtracted once per occurrence in the output]:F:_files' \
        '--gpu-layers[the target'\''s last layers that are on the device, its output head being one; auto\: as many as fit; or all]:N:_files' \
        '--kernels[kernel table, such as reference or avx2; cuda_tc\: a GPU'\''s tensor cores; without it the fastest there is]:NAME:_files' \
        '--kv-cache-type[type of cached keys and values; auto\: bf16; q8_0\: 8 bits and a scale per 32 numbers; e4m3\: 8 bits]:TYPE:(auto f32 bf16 f16 e4m3 q8_0)' \
        '--kv-pages[pages of the KV cache; 0\: enough for a full batch, within a third of free memory]:N:_files' \
        '--lora[a LoRA adapter\: a folder of PEFT or a GGUF file, perhaps with \:SCALE behind it. With a name only requests that choose it use it, without one all do; may be given again]:[NAME=]PATH:_files' \
        '--max-batch[sequences that run together]:N:_files' \
        '--max-batch-rows[rows of one pass\: prompt tokens, pending tokens and drafted ones; at least --max-batch; 0\: what --prefill-chunk and a full batch with its drafts need]:N:_files' \
        '--max-tokens[output of a request that names no number of tokens, at most; -1\: the rest of the context]:N:_files' \
        '--memory[most memory to use, such as 800M or 6G; layers that do not fit are read from the packed cache in every pass, ahead of the layer that needs them]:SIZE:_files' \
        '--min-p[keep tokens with at least this fraction of the likeliest one'\''s probability]:P:_files' \
        '--offline[fetch nothing, as HF_HUB_OFFLINE=1 does]' \
        '--output[the answers, a line each; those in the file are kept, and only the rest is run; without it standard output]:FILE:_files' \
        '--packed-cache[folder for weights in the layout of the kernels\: written by the first start, mapped by later ones]:DIR:_files' \
        '--page-size[tokens per page of the KV cache]:N:_files' \
        '--pin[keep each thread on one processor; auto\: with several NUMA nodes and a thread for every processor]:WHEN:(auto on off)' \
        '--pipeline-parallel[groups of the target'\''s layers, each with --tensor-parallel ranks]:N:_files' \
        '--pooling[what /v1/embeddings takes of a text'\''s states, its last one or their mean; rank\: the model is a reranker, such as Qwen3-Reranker, and answers /v1/rerank instead]:WHAT:(last mean rank)' \
        '--prefill-chunk[prompt tokens computed in one pass]:N:_files' \
        '--presence-penalty[subtracted once from tokens already in the output]:P:_files' \
        '--prompt-cache[folder for what prompts and answers have computed\: later starts read it where a prompt begins alike]:DIR:_files' \
        '--prompt-cache-size[most bytes in that folder, for all models together, such as 800M or 6G; the longest unused files go first]:SIZE:_files' \
        '--pull[fetch a model that is named and is not on this machine; without it a terminal asks first]' \
        '--rank-memory[processes of one machine that share a target exchange numbers in shared memory; off\: through MPI]:WHEN:(on off)' \
        '--repetition-penalty[divides positive logits of tokens seen in prompt or output, multiplies negative ones]:R:_files' \
        '--served-model-name[the model'\''s names in the API, separated by commas; answers have the first one; without it the name of its folder or file]:NAME:_files' \
        '--speculative[method,key=value,... or a YAML or JSON file\: auto, none, ngram, draft_target, ...; keys are listed in docs/reference/options.md; without it auto]:CONFIG:_files' \
        '--speculative-model[draft model or learned drafter; without --speculative what it is decides the method]:DIR:_files' \
        '--temperature[0 is greedy\: always the likeliest token; serve\: where neither the request nor generation_config.json says]:T:_files' \
        '--tensor-parallel[ranks that share each layer of the target\: processes of mpirun, or else threads]:N:_files' \
        '--think[whether a model that can think first does so\: on, off, or the tokens that it may think; without it as its template decides; serve\: a request may say otherwise]:HOW:_files' \
        '--thinking-message[is written where the tokens of --think end, before the mark that closes the thinking]:TEXT:_files' \
        '--threads[threads; 0\: one per core]:N:_files' \
        '--top-k[keep the K likeliest tokens; 0\: all]:K:_files' \
        '--top-n-sigma[keep tokens within N standard deviations of all logits below the largest one; -1 or 0\: all]:N:_files' \
        '--top-p[keep the smallest set of likeliest tokens that reaches this probability]:P:_files' \
        '--typical-p[keep the tokens nearest to the expected information that together reach this probability]:P:_files' \
        '--weights[type the weights are held in; auto\: as stored, q8\: one scale per output, q4\: q4_0, f8\: E4M3 in blocks of 128]:TYPE:(auto f32 bf16 f8 q8_0 q8 q4)' \
        '--xtc-probability[how often the likeliest tokens are left out, but for the last that reaches --xtc-threshold]:P:_files' \
        '--xtc-threshold[the least probability of a token that --xtc-probability leaves out]:P:_files' \
        '*:file:_files' ;;
    quantize)
      _arguments \
        '--config[YAML file of options; command line and environment come before it]:FILE:_files' \
        '--force[replace OUT if it exists]' \
        '--json[print one JSON object]' \
        '--threads[threads; 0\: one per core]:N:_files' \
        '--type[what matrices become; the output matrix is held at q6_k or more]:TYPE:(q8_0 q6_k q5_0 q5_1 q4_k q4_0 q4_1 iq4_nl mxfp4)' \
        '*:file:_files' ;;
    pull)
      _arguments \
        '--json[print one JSON object]' \
        '--offline[fetch nothing, as HF_HUB_OFFLINE=1 does]' \
        '--with-drafter[fetch a published drafter for the model, too, which runs then find]' \
        '*:file:_files' ;;
    models)
      _arguments \
        '--json[print one JSON object]' \
        '*:file:_files' ;;
    rm)
      _arguments \
        '*:file:_files' ;;
    ps)
      _arguments \
        '--json[print one JSON object]' \
        '*:file:_files' ;;
  esac
}
_outrider "$@"
