// Exports models, runs them in ONNX Runtime and compares logits with Ingot's. See onnx.sh, which starts this.
import {execFileSync} from 'node:child_process';
import fs from 'node:fs';
import {createRequire} from 'node:module';
import path from 'node:path';

const [root, work, sequenceLogits] = process.argv.slice(2);
const ort = createRequire(path.join(work, 'package.json'))('onnxruntime-node');

const TOLERANCE = 1e-4;

function ingot(...words) {
  return execFileSync(path.join(root, 'build', 'ingot'), words, {encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe']});
}

const failures = [];
function report(ok, name, what) {
  console.log(`${ok ? 'ok  ' : 'FAIL'} ${name}: ${what}`);
  if (!ok) failures.push(name);
}

// ---- numbers that are the same in every run

let state = 1;
function random(below) {
  state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
  return Math.floor(state / 2 ** 32 * below);
}
const ids = (count, vocabulary) => Array.from({length: count}, () => random(vocabulary));

// ---- one batch: rows of ids, each with so much padding before it; the first `past` columns are run before the others

function int64(rows) {
  return new ort.Tensor('int64', BigInt64Array.from(rows.flat(), BigInt), [rows.length, rows[0].length]);
}

class Exported {
  static async open(directory) {
    const exported = new Exported();
    exported.session = await ort.InferenceSession.create(path.join(directory, 'model.onnx'),
                                                         {intraOpNumThreads: 1, logSeverityLevel: 3});
    const config = JSON.parse(fs.readFileSync(path.join(directory, 'config.json'), 'utf8'));
    const hidden = config.hidden_size ?? config.n_embd, heads = config.num_attention_heads ?? config.n_head;
    exported.kvHeads = config.num_key_value_heads ?? heads;
    exported.headDim = config.head_dim ?? hidden / heads;
    exported.vocabulary = config.vocab_size;
    return exported;
  }

  emptyPast(batch) {
    const shape = [batch, this.kvHeads, 0, this.headDim];
    const names = this.session.inputNames.filter((name) => name.startsWith('past_key_values.'));
    return Object.fromEntries(names.map((name) => [name, new ort.Tensor('float32', new Float32Array(0), shape)]));
  }

  // Columns [begin, end) of the batch; gives logits[row][column - begin] and the past for what follows.
  async run({rows, mask, positions}, begin, end, past) {
    const columns = (matrix, from) => matrix.map((row) => row.slice(from, end));
    const results = await this.session.run({input_ids: int64(columns(rows, begin)), attention_mask: int64(columns(mask, 0)),
                                            position_ids: int64(columns(positions, begin)), ...past});
    const {data, dims} = results.logits;
    if (dims[0] !== rows.length || dims[1] !== end - begin || dims[2] !== this.vocabulary)
      throw new Error(`logits of shape ${dims}`);
    const logits = rows.map((_, b) => Array.from({length: end - begin}, (_, t) => {
      const at = (b * (end - begin) + t) * this.vocabulary;
      return data.subarray(at, at + this.vocabulary);
    }));
    const next = Object.fromEntries(Object.keys(past).map((name) => [name, results[name.replace('past_key_values', 'present')]]));
    return {logits, past: next};
  }
}

function padded(sequences, width, offset) {
  const rows = [], mask = [], positions = [];
  for (const sequence of sequences) {
    const pad = width - sequence.length;
    rows.push([...Array(pad).fill(0), ...sequence]);
    mask.push([...Array(pad).fill(0), ...sequence.map(() => 1)]);
    positions.push([...Array(pad).fill(1), ...sequence.map((_, t) => t + offset)]);
  }
  return {rows, mask, positions};
}

// [lengths of the rows, past, position of the first token]: rows shorter than the longest are padded on the left.
const CASES = [
  [[1], 0], [[70], 0], [[13, 13], 0], [[31, 31, 31], 0], [[41], 40], [[110, 110, 110], 40], [[18, 18], 17], [[6, 6, 6], 1],
  [[40, 40], 33], [[2], 1], [[9, 4], 0], [[70, 1, 33], 0], [[50, 12, 39], 20], [[41, 3], 40], [[60, 60, 2], 40],
];

async function compare(name, original, {dtype = 'f32', longest = 110, offset = 0} = {}) {
  const out = path.join(work, `${name}-${dtype}`);
  ingot('export', original, '--format', 'onnx', '--dtype', dtype, '--out', out);
  // Ingot's numbers with weights that are rounded in the same way.
  let reference = original;
  if (dtype !== 'f32') {
    reference = path.join(work, `${name}-${dtype}-hf`);
    ingot('export', original, '--format', 'hf', '--dtype', dtype, '--out', reference);
  }
  const model = await Exported.open(out);
  const cases = CASES.filter(([lengths]) => Math.max(...lengths) <= longest)
                     .map(([lengths, past]) => ({past, sequences: lengths.map((length) => ids(length, model.vocabulary))}));

  const list = path.join(work, `${name}.ids.json`), file = path.join(work, `${name}.logits`);
  fs.writeFileSync(list, JSON.stringify(cases.flatMap(({sequences}) => sequences)));
  execFileSync(sequenceLogits, [reference, list, file]);
  const bytes = fs.readFileSync(file);
  const ours = new Float32Array(bytes.buffer, bytes.byteOffset, bytes.length / 4);

  let at = 0, largest = 0, difference = 0, compared = 0, notFinite = 0, worst = '';
  for (const {past, sequences} of cases) {
    const width = Math.max(...sequences.map((sequence) => sequence.length));
    const batch = padded(sequences, width, offset);
    let logits = sequences.map(() => []), cache = model.emptyPast(sequences.length);
    for (const [begin, end] of past > 0 ? [[0, past], [past, width]] : [[0, width]]) {
      const part = await model.run(batch, begin, end, cache);
      cache = part.past;
      logits = logits.map((row, b) => [...row, ...part.logits[b]]);
    }
    for (const [b, sequence] of sequences.entries()) {
      for (const row of logits[b].slice(width - sequence.length)) {
        for (const value of row) {
          const expected = ours[at++];
          if (!(Math.abs(value - expected) <= difference)) {
            difference = Math.abs(value - expected);
            worst = `row ${b} of lengths ${sequences.map((one) => one.length)} with past ${past}`;
          }
          largest = Math.max(largest, Math.abs(expected));
          ++compared;
        }
      }
      // What padding computes is of no use, but it must not spread.
      for (const row of logits[b].slice(0, width - sequence.length)) notFinite += row.some((x) => !Number.isFinite(x));
    }
  }
  report(at === ours.length && difference <= TOLERANCE && notFinite === 0 && largest > 1, name,
         `${dtype}${offset ? `, from position ${offset}` : ''}, ${cases.length} batches, ${compared} logits up to ` +
         `${largest.toFixed(1)}, largest difference ${difference.toExponential(1)} (${worst})`);
  await model.session.release();
}

// ---- models trained for one step, so that they are what Ingot writes, of sizes that no two extents share

const CORPUS = path.join(work, 'corpus.txt'), TOKENIZER = path.join(work, 'tokenizer.json');
fs.writeFileSync(CORPUS, 'The cat sat on the mat and looked at the rain. It was 12 o\'clock, and nobody had come.\n'.repeat(60));

function trained(name, config) {
  const output = path.join(work, `run-${name}`);
  fs.rmSync(output, {recursive: true, force: true});
  const run = path.join(work, `${name}.json`);
  fs.writeFileSync(run, JSON.stringify({
    output_dir: output,
    model: {config: {...config, initializer_range: 0.2}},
    tokenizer: {path: TOKENIZER, train_vocab_size: 270},
    data: {train: [{path: CORPUS}], sequence_length: 32},
    training: {steps: 1, global_batch_size: 2},
    optimizer: {learning_rate: 1e-2},
    logging: {tensorboard: false},
  }));
  ingot('train', run);
  return path.join(output, 'model');
}

const LLAMA = {model_type: 'llama', hidden_size: 36, intermediate_size: 52, num_hidden_layers: 2, num_attention_heads: 6,
               num_key_value_heads: 2, max_position_embeddings: 128};
const GPT2 = {model_type: 'gpt2', n_embd: 30, n_layer: 2, n_head: 5, n_positions: 128};
const LLAMA3 = {rope_type: 'llama3', factor: 8.0, low_freq_factor: 1.0, high_freq_factor: 4.0,
                original_max_position_embeddings: 64};
const MODELS = {
  gpt2: GPT2,
  'gpt2-untied-scaled': {...GPT2, n_inner: 44, tie_word_embeddings: false, activation_function: 'gelu',
                         scale_attn_by_inverse_layer_idx: true},
  'gpt2-post-norm-sinusoidal': {...GPT2, do_layer_norm_before: false, position_embedding_type: 'sinusoidal',
                                activation_function: 'relu'},
  'gpt2-rotary-rms-norm': {...GPT2, position_embedding_type: 'rotary', norm_type: 'rms_norm'},
  llama: LLAMA,
  'llama-all-heads': {...LLAMA, num_key_value_heads: 6, tie_word_embeddings: true},
  'llama-one-head': {...LLAMA, num_key_value_heads: 1},
  'llama-biases-head-dim': {...LLAMA, head_dim: 10, attention_bias: true, mlp_bias: true, hidden_act: 'gelu_pytorch_tanh'},
  'llama-rope-linear': {...LLAMA, rope_scaling: {type: 'linear', factor: 4.0}},
  'llama-rope-llama3': {...LLAMA, rope_theta: 500.0, rope_scaling: LLAMA3},
  'llama-layer-norm-learned': {...LLAMA, norm_type: 'layer_norm', position_embedding_type: 'learned'},
  mistral: {...LLAMA, model_type: 'mistral', sliding_window: 7},
  qwen2: {...LLAMA, model_type: 'qwen2', tie_word_embeddings: true},
  qwen3: {...LLAMA, model_type: 'qwen3', head_dim: 14},
  gemma2: {...LLAMA, model_type: 'gemma2', head_dim: 10, query_pre_attn_scalar: 12, sliding_window: 5,
           attn_logit_softcapping: 4.0, final_logit_softcapping: 6.0},
};

const stories = path.join(root, '..', 'shared', 'data', 'stories260k');
if (fs.existsSync(path.join(stories, 'model.safetensors')))
  for (const dtype of ['f32', 'f16', 'bf16']) await compare('stories260k', stories, {dtype});
else
  console.log(`stories260k is not there (${stories}): only models trained here are compared`);
for (const [name, config] of Object.entries(MODELS)) await compare(name, trained(name, config));
await compare('gpt2', path.join(work, 'run-gpt2', 'model'), {dtype: 'bf16'});
// Rotary positions are relative: far from the start the logits are the same, if no angle is lost.
await compare('llama', path.join(work, 'run-llama', 'model'), {offset: 100000});

console.log(failures.length === 0 ? 'onnx oracle: all agree' : `onnx oracle: ${failures.length} comparisons FAIL`);
process.exit(failures.length === 0 ? 0 : 1);
