#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Puts a library behind the two routes that compare_servers.py asks: GET /health and POST /v1/chat/completions. It answers
one request at a time, greedily, with exactly max_tokens tokens, and streams only the usage.

    bench/library_server.py openvino|transformers MODEL.gguf --port N [--threads 2] [--lookup TOKENS]

The Python that runs this file has the library: openvino-genai; or torch, transformers, gguf and accelerate. Both
read GGUF files; transformers turns the weights into f32. --lookup drafts so many tokens from the prompt (prompt look-up).
"""

import argparse
import http.server
import json
import pathlib


def open_openvino(options):
    import openvino_genai

    model = openvino_genai.LLMPipeline(options.model, "CPU", INFERENCE_NUM_THREADS=options.threads,
                                       **({"prompt_lookup": True} if options.lookup else {}))
    tokenizer = model.get_tokenizer()

    def answer(messages, count):
        config = openvino_genai.GenerationConfig(max_new_tokens=count, min_new_tokens=count, ignore_eos=True, do_sample=False,
                                                 apply_chat_template=False)
        if options.lookup:
            config.num_assistant_tokens, config.max_ngram_size = options.lookup, 3
        text = tokenizer.apply_chat_template(messages, add_generation_prompt=True)
        result = model.generate([text], config)
        return result.perf_metrics.get_num_generated_tokens(), result.texts[0]

    return answer


def open_transformers(options):
    import torch
    import transformers

    torch.set_num_threads(options.threads)
    path = pathlib.Path(options.model)
    tokenizer = transformers.AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)
    model = transformers.AutoModelForCausalLM.from_pretrained(path.parent, gguf_file=path.name, dtype=torch.float32)
    drafts = {"prompt_lookup_num_tokens": options.lookup} if options.lookup else {}

    def answer(messages, count):
        inputs = tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_tensors="pt", return_dict=True)
        length = inputs["input_ids"].shape[1]
        with torch.inference_mode():
            output = model.generate(**inputs, max_new_tokens=count, min_new_tokens=count, do_sample=False,
                                    pad_token_id=tokenizer.eos_token_id, **drafts)
        return output.shape[1] - length, tokenizer.decode(output[0, length:])

    return answer


class Handler(http.server.BaseHTTPRequestHandler):
    answer = None

    def reply(self, text):
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def do_GET(self):
        self.reply(b"ok")

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        tokens, text = Handler.answer(request["messages"], request["max_tokens"])
        usage = {"text": text, "usage": {"completion_tokens": int(tokens)}}
        self.reply(b"data: " + json.dumps(usage, separators=(",", ":")).encode() + b"\n")

    def log_message(self, *_):
        pass


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library", choices=["openvino", "transformers"])
    parser.add_argument("model", help="GGUF file")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--lookup", type=int, default=0, help="tokens that are drafted from the prompt [0: none]")
    options = parser.parse_args()
    Handler.answer = staticmethod({"openvino": open_openvino, "transformers": open_transformers}[options.library](options))
    http.server.HTTPServer(("127.0.0.1", options.port), Handler).serve_forever()


if __name__ == "__main__":
    main()
