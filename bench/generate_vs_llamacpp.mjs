// Milliseconds a generated token of GPT-2 124M (random weights): `ingot generate` with fp32 and int8 weights beside
// llama.cpp with the same model exported as F32 and Q8_0, in turn: A B A B … Started by generate_vs_llamacpp.sh.
//
// llama.cpp's figure is the one that it measures itself, without choosing the token, in the faster of its two forms
// (with and without flash attention; its cache is f16, as it is by default). Ingot's is ms_per_token of `generate`, the
// choice included. Prints one JSON object per kind of weights; what counts is the median of the rounds' ratios.
import {execFileSync} from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import {pathToFileURL} from 'node:url';
import {parseArgs} from 'node:util';

const {values: flags, positionals: [root, packages]} = parseArgs({
  allowPositionals: true,
  options: {rounds: {type: 'string', default: '5'}, tokens: {type: 'string', default: '64'},
            threads: {type: 'string', default: '2'}},
});
const [rounds, tokens, threads] = [flags.rounds, flags.tokens, flags.threads].map(Number);
const {getLlama, LlamaLogLevel} = await import(pathToFileURL(path.join(packages, 'node_modules/node-llama-cpp/dist/index.js')));
const lines = [];
const llama = await getLlama({gpu: false, build: 'never', maxThreads: threads, logLevel: LlamaLogLevel.info,
                              logger: (_, text) => lines.push(text)});

const PROMPT = 'The cat sat on the mat and looked at the rain.';
const CONFIG = {model_type: 'gpt2', vocab_size: 50257, n_embd: 768, n_layer: 12, n_head: 12, n_positions: 1024};
const KINDS = [{weights: 'fp32', dtype: 'f32'}, {weights: 'int8', dtype: 'q8_0'}];

function ingot(...words) {
  return execFileSync(path.join(root, 'build', 'ingot'), words, {encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore']});
}

function randomModel(directory) {
  fs.mkdirSync(directory, {recursive: true});
  const config = path.join(packages, 'config.json');
  fs.writeFileSync(config, JSON.stringify(CONFIG));
  execFileSync(path.join(root, 'build/tests/oracles/random_model'), [config, '1', directory]);
  fs.copyFileSync(path.join(root, 'tests/golden/llama_cpp/tokenizer.json'), path.join(directory, 'tokenizer.json'));
}

function ours(directory, weights) {
  const found = JSON.parse(ingot('generate', directory, '--prompt', PROMPT, '--temperature', '0', '--max-tokens', String(tokens),
                                 '--weights', weights, '--threads', String(threads), '--json'));
  if (found.tokens.length !== tokens) throw new Error(`ingot ended after ${found.tokens.length} tokens`);
  return found;
}

// From the line "eval time = 1234.56 ms / 63 runs ( 19.60 ms per token, …)"; "prompt eval time" is another.
function timed() {
  const found = lines.join('\n').match(/(?<!prompt )eval time = +([\d.]+) ms \/ +(\d+) runs/);
  if (!found) throw new Error(`llama.cpp printed no time:\n${lines.join('\n')}`);
  return Number(found[1]) / Number(found[2]);
}

async function theirs(model, prompt, flashAttention) {
  const context = await model.createContext({contextSize: 512, sequences: 1, flashAttention, threads: {ideal: threads, min: threads},
                                             performanceTracking: true});
  let count = 0;
  for await (const _ of context.getSequence().evaluate(prompt, {temperature: 0}))
    if (++count === tokens) break;
  lines.length = 0;
  await context.printTimings();
  await context.dispose();
  return timed();
}

const median = (list) => list.toSorted((a, b) => a - b)[list.length >> 1];
const rounded = (list) => list.map((x) => Number(x.toPrecision(4)));

async function compare(directory, {weights, dtype}) {
  const file = path.join(packages, `gpt2-124m-${dtype}.gguf`);
  ingot('export', directory, '--format', 'gguf', '--dtype', dtype, '--out', file);
  const model = await llama.loadModel({modelPath: file, gpuLayers: 0});
  const prompt = ours(directory, weights).prompt_ids;
  const forms = [await theirs(model, prompt, false), await theirs(model, prompt, true)];
  const flash = forms[1] < forms[0];
  const all = [];
  for (let i = 0; i < rounds; ++i) all.push([ours(directory, weights).ms_per_token, await theirs(model, prompt, flash)]);
  const read = JSON.parse(ingot('check', '--json', '--threads', String(threads))).memory_gbytes_per_s.read;
  const ratios = rounded(all.map(([a, b]) => b / a));
  console.log(JSON.stringify({weights, gguf: dtype, threads, tokens, flash_attention: flash, ingot_ms_per_token: rounded(all.map(([a]) => a)),
                              llama_cpp_ms_per_token: rounded(all.map(([, b]) => b)), ratios, median_ratio: median(ratios),
                              read_gbytes_per_s: read}));
  await model.dispose();
  fs.rmSync(file);
}

const directory = path.join(packages, 'gpt2-124m');
randomModel(directory);
for (const kind of KINDS) await compare(directory, kind);
fs.rmSync(directory, {recursive: true});
await llama.dispose();
process.exit(0);
