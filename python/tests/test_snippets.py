# SPDX-License-Identifier: Apache-2.0
"""Programs written for TensorRT-LLM run, changed in nothing but the paths of models."""

import json
import re
import subprocess
import time
import urllib.error
import urllib.request

import outrider.compat.tensorrt_llm  # noqa: F401
import pytest
from conftest import MODELS, PROMPT, ROOT
from outrider._program import PROGRAM

PAGE = ROOT.parent / "shared" / "data" / "snippets" / "tensorrt_llm.md"
TARGET = str(MODELS / "outrider-small")


def blocks(kind: str) -> list:
    """The code blocks of the page, which is missing where the tests run elsewhere."""
    if not PAGE.is_file():
        return []
    found = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    return [text for of_kind, text in found if of_kind == kind]


def with_models(code: str) -> str:
    draft = "outrider-eagle3" if "Eagle" in code else "outrider-draft"
    for place in ("/path/to/draft_model", "/path/to/draft/model"):
        code = code.replace(place, str(MODELS / draft))
    return code.replace("/path/to/target_model", TARGET).replace("/path/to/deepseek_model", TARGET)


def run(code: str, **names) -> dict:
    from tensorrt_llm import LLM, SamplingParams

    scope = {"LLM": LLM, **names}
    exec(compile(code, "snippet", "exec"), scope)
    with LLM(TARGET) as plain:
        params = SamplingParams(max_tokens=24)
        expected = plain.generate(PROMPT, params).outputs[0].token_ids
        with scope["llm"] as llm:
            scope["output"] = llm.generate(PROMPT, params)
    assert scope["output"].outputs[0].token_ids == expected
    return scope


def my_drafter():
    from tensorrt_llm._torch.pyexecutor.resource_manager import ResourceManager
    from tensorrt_llm._torch.pyexecutor.scheduler import ScheduledRequests
    from tensorrt_llm._torch.speculative.drafter import Drafter

    class MyDrafter(Drafter):
        def prepare_draft_tokens(self, scheduled_requests: ScheduledRequests, resource_manager: ResourceManager = None):
            for request in scheduled_requests.generation_requests:
                request.py_draft_tokens = request.get_tokens(0)[-3:]

    return MyDrafter


needs_page = pytest.mark.skipif(not PAGE.is_file(), reason=f"{PAGE} is not there")


@needs_page
@pytest.mark.parametrize("code", [code for code in blocks("python") if "llm =" in code],
                         ids=lambda code: re.search(r"\w+DecodingConfig", code).group(0))
def test_snippets_of_the_page(code):
    output = run(with_models(code), MyDrafter=my_drafter())["output"]
    assert output.speculation.drafted > 0


@needs_page
def test_the_loop_of_the_page():
    """It sets dummy drafts of requests, inside of a drafter's class."""
    (loop,) = [code for code in blocks("python") if "self.active_requests" in code]
    body = "\n        ".join(["self.active_requests = scheduled_requests.generation_requests", "max_draft_len = 3",
                              *re.sub(r"\n(?=req\.)", "\n    ", loop).strip().splitlines()])
    code = f"""
from tensorrt_llm._torch.speculative.drafter import Drafter
from tensorrt_llm.llmapi import UserProvidedDecodingConfig
class Dummy(Drafter):
    def prepare_draft_tokens(self, scheduled_requests, resource_manager=None):
        {body}
llm = LLM({TARGET!r}, speculative_config=UserProvidedDecodingConfig(max_draft_len=3, drafter=Dummy()))
"""
    assert run(code)["output"].speculation.drafted > 0


@pytest.fixture
def yaml_file(tmp_path):
    """The page's YAML. Its indentation is lost: the keys after speculative_config belong into it."""
    (yaml,) = [text for text in blocks("") if "decoding_type" in text]
    before, after = with_models(yaml).split("speculative_config:\n")
    block = "".join(f"  {line}\n" for line in after.replace("outrider-draft", "outrider-eagle3").splitlines())
    file = tmp_path / "config.yml"
    file.write_text(f"{before}speculative_config:\n{block}", encoding="utf-8")
    return file


@needs_page
@pytest.mark.parametrize("command", ["generate", "bench"])
def test_the_yaml_of_the_page(command, yaml_file):
    prompts = {"generate": ["-p", PROMPT], "bench": ["--limit", "1", "--runs", "1"]}[command]
    done = subprocess.run([PROGRAM, command, TARGET, "--extra_llm_api_options", yaml_file, *prompts, "--max-tokens", "8",
                           "--json"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("\n") == 1 and "disable_overlap_scheduler has no effect here" in done.stderr


@needs_page
def test_a_server_with_the_yaml_of_the_page(yaml_file):
    server = subprocess.Popen([PROGRAM, "serve", TARGET, "--extra_llm_api_options", yaml_file, "--port", "0"],
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        url = server.stdout.readline().split()[-1]
        body = json.dumps({"prompt": PROMPT, "max_tokens": 8, "temperature": 0}).encode()
        answer = json.loads(when_ready(url + "/v1/completions", body))
        assert answer["usage"]["completion_tokens"] == 8
    finally:
        server.terminate()
        server.wait()


def when_ready(url: str, body: bytes) -> bytes:
    """The answer of a server, once it has loaded its model."""
    for _ in range(200):
        try:
            request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
            return urllib.request.urlopen(request).read()
        except urllib.error.HTTPError as error:
            assert error.code == 503
            time.sleep(0.1)
    raise AssertionError("expected an answer within 20 s, found none")


OWN = {
    "draft model": f"DraftTargetDecodingConfig(max_draft_len=3, speculative_model={str(MODELS / 'outrider-draft')!r})",
    "EAGLE": f"EagleDecodingConfig(max_draft_len=3, speculative_model={str(MODELS / 'outrider-eagle3')!r}, "
             "eagle3_one_model=True)",
    "EAGLE-3 tree": f"Eagle3DecodingConfig(max_draft_len=4, speculative_model={str(MODELS / 'outrider-eagle3')!r}, "
                    "use_dynamic_tree=True, dynamic_tree_max_topK=3, max_total_draft_tokens=12)",
    "n-grams": "NGramDecodingConfig(max_draft_len=4, max_matching_ngram_size=3, is_keep_all=True, is_use_oldest=False)",
    "MTP": "MTPDecodingConfig(num_nextn_predict_layers=2)",
    "Medusa": f"MedusaDecodingConfig(speculative_model={str(MODELS / 'outrider-medusa')!r}, max_draft_len=3)",
    "Lookahead": "LookaheadDecodingConfig(max_window_size=4, max_ngram_size=3, max_verification_set_size=4)",
}


@pytest.mark.parametrize("config", OWN.values(), ids=OWN.keys())
def test_every_configuration(config):
    code = f"""
from tensorrt_llm.llmapi import *
llm = LLM({TARGET!r}, speculative_config={config}, cuda_graph_config=CudaGraphConfig(max_batch_size=8),
          kv_cache_config=KvCacheConfig(enable_block_reuse=False), backend="pytorch", tensor_parallel_size=1)
"""
    run(code)
