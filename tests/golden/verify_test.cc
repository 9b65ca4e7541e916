// Every stored reference against the program that trains: what `ingot verify` does, on the compiled program and op by
// op; that it sees one wrong number; and that the number of threads changes no bit.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "checkpoint/convert.h"
#include "checkpoint/safetensors_writer.h"
#include "references.h"
#include "train/model_directory.h"
#include "train/programs.h"
#include "train/verify.h"

namespace ingot {
namespace {

Model model_of(const std::string& name) {
  auto model = Model::from_json(read_file(references() / name / "config.json").value(), "config.json");
  if (!model.ok()) throw std::runtime_error(model.error().message);
  return std::move(*model);
}

Verification verify(const Model& model, const fs::path& weights, const fs::path& reference,
                    VerifyOptions options = {}) {
  const ThreadPool pool(1);
  auto verification = verify_model(model, weights, reference, options, pool);
  if (!verification.ok()) throw std::runtime_error(verification.error().message);
  return std::move(*verification);
}

// A directory of the test's own that is gone with it.
struct TemporaryDirectory {
  fs::path path;
  TemporaryDirectory() {
    std::string name = (fs::temp_directory_path() / "ingot-golden-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary directory");
    path = name;
  }
  ~TemporaryDirectory() { fs::remove_all(path); }
};

// A tensor of a file, changed.
using Edit = std::function<void(const std::string& name, std::span<float> values)>;

// Copies a safetensors file, giving every float tensor to `edit`, and each the name that `rename` gives it.
void copy_tensors(const fs::path& from, const fs::path& to, const Edit& edit,
                  const std::function<std::string(const std::string&)>& rename = {}) {
  const auto file = SafetensorsFile::open(from);
  ASSERT_TRUE(file.ok()) << file.error().message;
  std::map<std::string, std::pair<ConstTensorView, std::vector<float>>> tensors;
  std::vector<TensorInfo> infos;
  for (TensorInfo info : file->tensors()) {
    const ConstTensorView view = file->view(info);
    std::vector<float> values;
    if (is_float(info.dtype)) {
      values.resize(static_cast<size_t>(info.shape.elements()));
      convert_to_f32(view, values);
      if (edit) edit(info.name, values);
    }
    if (rename) info.name = rename(info.name);
    infos.push_back(info);
    tensors[info.name] = {view, std::move(values)};
  }
  auto writer = SafetensorsWriter::create(to, infos, file->metadata());
  ASSERT_TRUE(writer.ok()) << writer.error().message;
  const std::vector<TensorInfo> order(writer->order().begin(), writer->order().end());
  for (const TensorInfo& info : order) {
    const auto& [view, values] = tensors[info.name];
    const std::span<const std::byte> bytes =
        values.empty() ? std::span(view.data, view.bytes()) : std::as_bytes(std::span(values));
    ASSERT_TRUE(writer->write(info.name, bytes).ok());
  }
  ASSERT_TRUE(writer->finish().ok());
}

// Copies a safetensors file without the tensors whose names begin so.
void drop_tensors(const fs::path& from, const fs::path& to, const std::vector<std::string>& prefixes) {
  const auto file = SafetensorsFile::open(from);
  ASSERT_TRUE(file.ok()) << file.error().message;
  std::vector<TensorInfo> kept;
  for (const TensorInfo& info : file->tensors())
    if (std::ranges::none_of(prefixes, [&](const std::string& prefix) { return info.name.starts_with(prefix); }))
      kept.push_back(info);
  auto writer = SafetensorsWriter::create(to, kept, file->metadata());
  ASSERT_TRUE(writer.ok()) << writer.error().message;
  const std::vector<TensorInfo> order(writer->order().begin(), writer->order().end());
  for (const TensorInfo& info : order) {
    const ConstTensorView view = file->view(info.name);
    ASSERT_TRUE(writer->write(info.name, std::span(view.data, view.bytes())).ok());
  }
  ASSERT_TRUE(writer->finish().ok());
}

class Verify : public ::testing::TestWithParam<std::tuple<std::string, bool>> {};

TEST_P(Verify, AgreesInEveryTensor) {
  const auto& [name, fuse] = GetParam();
  const Verification verification =
      verify(model_of(name), references() / name, references() / name / "reference.safetensors", {.fuse = fuse});
  EXPECT_TRUE(verification.ok) << describe(verification);
  EXPECT_EQ(verification.first_failure, "");
  // Everything in the file but ids, labels and documents was compared, the ten optimizer steps included.
  const auto file = SafetensorsFile::open(references() / name / "reference.safetensors");
  const auto inputs = std::ranges::count_if(file->tensors(), [](const TensorInfo& t) { return t.dtype == DType::i64; });
  EXPECT_EQ(verification.tensors.size(), file->tensors().size() - static_cast<size_t>(inputs));
  EXPECT_EQ(verification.tensors.front().name, "hidden_states.0");
  EXPECT_TRUE(verification.tensors.back().name.starts_with("after."));
}

// Against numbers in fp32. Were a value not rounded, or one rounded that should not be, fp16 would not be this close.
TEST_P(Verify, AgreesInMixedPrecision) {
  const auto& [name, fuse] = GetParam();
  for (const DType dtype : {DType::bf16, DType::f16}) {
    VerifyOptions options;
    options.fuse = fuse;
    options.precision = {dtype, {}};
    options.tolerance = usual_tolerance(dtype);
    options.explain = false;
    const Verification v =
        verify(model_of(name), references() / name, references() / name / "reference.safetensors", options);
    EXPECT_TRUE(v.ok) << name_of(dtype) << "\n" << describe(v);
    EXPECT_TRUE(std::ranges::any_of(v.tensors, [](const TensorComparison& t) { return t.max_rel > 1e-4; }))
        << "nothing was rounded";
  }
}

INSTANTIATE_TEST_SUITE_P(All, Verify, ::testing::Combine(::testing::ValuesIn(reference_names()), ::testing::Bool()),
                         [](const auto& one) {
                           std::string name = std::get<0>(one.param);
                           std::ranges::replace(name, '-', '_');
                           return name + (std::get<1>(one.param) ? "_graph" : "_eager");
                         });

TEST(VerifySees, OneWrongWeightInTheTensorThatItReachesFirst) {
  for (const auto& [name, weight, failure] :
       {std::tuple{"gpt2", "transformer.h.1.mlp.c_fc.weight", "hidden_states.2"},
        {"gpt2", "transformer.wpe.weight", "hidden_states.0"},
        {"gpt2", "transformer.ln_f.bias", "final_norm"},
        {"gpt2-untied", "lm_head.weight", "logits"},
        {"llama", "model.layers.0.self_attn.v_proj.weight", "hidden_states.1"},
        {"llama-gqa-packed", "model.layers.1.mlp.down_proj.weight", "hidden_states.2"},
        {"gemma2-packed", "model.layers.0.post_feedforward_layernorm.weight", "hidden_states.1"},
        {"gemma2-uncapped", "model.norm.weight", "final_norm"}}) {
    const TemporaryDirectory directory;
    int changed = 0;
    copy_tensors(references() / name / "model.safetensors", directory.path / "model.safetensors",
                 [&](const std::string& tensor, std::span<float> values) {
                   if (tensor != weight) return;
                   values[3] += 0.1f;
                   ++changed;
                 });
    ASSERT_EQ(changed, 1);
    const Verification verification =
        verify(model_of(name), directory.path, references() / name / "reference.safetensors", {.explain = false});
    EXPECT_FALSE(verification.ok) << weight;
    EXPECT_EQ(verification.first_failure, failure) << weight;
    EXPECT_EQ(verification.tensors.back().name, failure);
    EXPECT_FALSE(verification.tensors.back().ok);
    EXPECT_FALSE(verification.causes.empty());
  }
}

TEST(VerifySees, OneWrongElementOfAnyTensorOfTheReference) {
  for (const std::string name : {"gpt2-packed", "llama-gqa-packed", "gemma2-packed"}) {
    const fs::path reference = references() / name / "reference.safetensors";
    const Model model = model_of(name);
    std::vector<std::string> tensors;
    const auto file = SafetensorsFile::open(reference);
    for (const TensorInfo& info : file->tensors())
      if (is_float(info.dtype)) tensors.push_back(info.name);
    for (const std::string& wrong : tensors) {
      // Every stage, and in one model every gradient.
      const bool is_state = wrong.starts_with("grad.hidden_states.");
      const bool is_parameter =
          wrong.starts_with("after.") || (wrong.starts_with("grad.") && !is_state && name != "gpt2-packed");
      const bool wanted = !is_parameter || wrong.ends_with("norm.weight") || wrong.ends_with("ln_f.bias");
      if (!wanted) continue;
      const TemporaryDirectory directory;
      copy_tensors(reference, directory.path / "reference.safetensors", [&](const std::string& n, std::span<float> v) {
        if (n != wrong) return;
        float largest = 1e-3f;
        for (float x : v) largest = std::max(largest, std::abs(x));
        v[v.size() / 2] += 1e-3f * (wrong.starts_with("grad.") ? largest : std::max(largest, 1.0f));
      });
      const Verification verification =
          verify(model, references() / name, directory.path / "reference.safetensors", {.explain = false});
      EXPECT_FALSE(verification.ok) << wrong;
      EXPECT_EQ(verification.first_failure, wrong);
    }
  }
}

TEST(VerifySees, WhichEpsilonOrActivationMakesItAgree) {
  const auto explain = [](const std::string& name, const char* wrong) {
    const auto model = model_of(name).with_overrides(wrong, "test");
    EXPECT_TRUE(model.ok());
    const Verification v = verify(*model, references() / name, references() / name / "reference.safetensors");
    EXPECT_FALSE(v.ok);
    return v.causes.empty() ? std::string() : v.causes.front();
  };
  EXPECT_NE(explain("gpt2-untied", R"({"activation_function": "gelu_new"})").find("activation_function is \"gelu\""),
            std::string::npos);
  EXPECT_NE(explain("llama-gqa-packed", R"({"rms_norm_eps": 1e-2})").find("rms_norm_eps is 1e-05"), std::string::npos);
  EXPECT_NE(explain("mistral-window", R"({"rope_theta": 100})").find("rope_theta is 10000"), std::string::npos);
  EXPECT_NE(explain("gemma2-uncapped", R"({"attn_logit_softcapping": 0.5})").find("attn_logit_softcapping is off"),
            std::string::npos);
  EXPECT_NE(explain("gemma2-uncapped", R"({"final_logit_softcapping": 1})").find("final_logit_softcapping is off"),
            std::string::npos);
  EXPECT_NE(explain("gemma2-uncapped", R"({"query_pre_attn_scalar": 3})").find("query_pre_attn_scalar is 8"),
            std::string::npos);
  EXPECT_NE(explain("gemma2-packed", R"({"hidden_activation": "silu"})").find("hidden_activation is \"gelu_new\""),
            std::string::npos);
}

// ---- one block alone

class VerifyLayer : public ::testing::TestWithParam<std::tuple<std::string, bool>> {};

TEST_P(VerifyLayer, EachBlockAgreesAlone) {
  const auto& [name, fuse] = GetParam();
  const Model model = model_of(name);
  const fs::path reference = references() / name / "reference.safetensors";
  const auto file = SafetensorsFile::open(reference);
  for (int64_t layer = 0; layer < model.config().num_hidden_layers; ++layer) {
    const Verification v = verify(model, references() / name, reference, {.fuse = fuse, .layer = layer});
    EXPECT_TRUE(v.ok) << describe(v);
    EXPECT_EQ(v.tensors.front().name, fmt::format("hidden_states.{}", layer + 1));
    // All that the file has of the block, and nothing else: its output, the gradients of its weights and of its input.
    std::set<std::string> expected{fmt::format("hidden_states.{}", layer + 1)}, found;
    const std::string inside = fmt::format(".{}.", layer), input = fmt::format("grad.hidden_states.{}", layer);
    for (const TensorInfo& info : file->tensors())
      if (info.name == input || (info.name.starts_with("grad.") && info.name.find(inside) != std::string::npos))
        expected.insert(info.name);
    for (const TensorComparison& tensor : v.tensors) found.insert(tensor.name);
    EXPECT_EQ(found, expected);
    EXPECT_EQ(v.tensors.size(), found.size());
  }
}

INSTANTIATE_TEST_SUITE_P(All, VerifyLayer,
                         ::testing::Combine(::testing::ValuesIn(reference_names()), ::testing::Bool()),
                         [](const auto& one) {
                           std::string name = std::get<0>(one.param);
                           std::ranges::replace(name, '-', '_');
                           return name + (std::get<1>(one.param) ? "_graph" : "_eager");
                         });

// The directory with a model of which one weight is wrong.
void write_wrong(const std::string& name, const std::string& weight, const fs::path& directory) {
  int changed = 0;
  copy_tensors(references() / name / "model.safetensors", directory / "model.safetensors",
               [&](const std::string& tensor, std::span<float> values) {
                 if (tensor != weight) return;
                 values[3] += 0.1f;
                 ++changed;
               });
  ASSERT_EQ(changed, 1) << weight;
}

TEST(VerifyLayer, IsNotDisturbedByOtherBlocks) {
  for (const std::string wrong : {"0", "2"}) {
    const TemporaryDirectory directory;
    write_wrong("gemma2-wide", "model.layers." + wrong + ".mlp.up_proj.weight", directory.path);
    for (int64_t layer = 0; layer < 3; ++layer) {
      const Verification v = verify(model_of("gemma2-wide"), directory.path,
                                    references() / "gemma2-wide" / "reference.safetensors", {.layer = layer});
      EXPECT_EQ(v.ok, std::to_string(layer) != wrong) << describe(v);
      EXPECT_EQ(v.first_failure, v.ok ? "" : fmt::format("hidden_states.{}", layer + 1));
    }
  }
}

// A file without gradients of hidden states: what reaches the block comes from our blocks behind it, and is said to.
TEST(VerifyLayer, SaysWhereItsGradientCameFrom) {
  const TemporaryDirectory directory;
  write_wrong("gpt2", "transformer.h.1.mlp.c_proj.weight", directory.path);
  const fs::path reference = references() / "gpt2" / "reference.safetensors";
  const Verification v = verify(model_of("gpt2"), directory.path, reference, {.layer = 0});
  ASSERT_FALSE(v.ok);
  EXPECT_EQ(v.tensors.front().name, "hidden_states.1");
  EXPECT_TRUE(v.tensors.front().ok);
  EXPECT_TRUE(v.first_failure.starts_with("grad.transformer.h.0.")) << v.first_failure;
  EXPECT_NE(v.causes.front().find("no grad.hidden_states.1"), std::string::npos) << v.causes.front();
}

// Hugging Face's list of hidden states ends with the one after the final norm.
TEST(VerifyLayer, JudgesTheLastBlockByTheFinalNormWhereItsOutputIsNotThere) {
  const TemporaryDirectory directory;
  const fs::path original = references() / "llama" / "reference.safetensors", cut = directory.path / "r.safetensors";
  drop_tensors(original, cut, {"hidden_states.2"});
  const Verification v = verify(model_of("llama"), references() / "llama", cut, {.layer = 1});
  EXPECT_TRUE(v.ok) << describe(v);
  EXPECT_EQ(v.tensors.front().name, "final_norm");
  EXPECT_GT(v.tensors.size(), 1u);
  const TemporaryDirectory wrong;
  write_wrong("llama", "model.layers.1.mlp.up_proj.weight", wrong.path);
  EXPECT_EQ(verify(model_of("llama"), wrong.path, cut, {.layer = 1}).first_failure, "final_norm");
}

TEST(VerifyLayer, SaysWhichKeyMakesTheBlockAgree) {
  const auto wrong = model_of("gemma2-packed").with_overrides(R"({"hidden_activation": "silu"})", "test");
  const Verification v = verify(*wrong, references() / "gemma2-packed",
                                references() / "gemma2-packed" / "reference.safetensors", {.layer = 1});
  ASSERT_FALSE(v.ok);
  EXPECT_NE(v.causes.front().find("hidden_activation is \"gelu_new\""), std::string::npos) << v.causes.front();
}

TEST(VerifyLayer, RefusesALayerThatIsNotThereAndAFileWithoutIts) {
  const ThreadPool pool(1);
  const fs::path original = references() / "gpt2" / "reference.safetensors";
  const auto refused = [&](const fs::path& reference, int64_t layer) {
    const auto result = verify_model(model_of("gpt2"), references() / "gpt2", reference, {.layer = layer}, pool);
    return result.ok() ? Error{ErrorKind::failed, "no error"} : result.error();
  };
  for (const int64_t layer : {-1, 2}) {
    EXPECT_EQ(refused(original, layer).kind, ErrorKind::usage);
    EXPECT_NE(refused(original, layer).message.find("layers 0 to 1"), std::string::npos);
  }
  const TemporaryDirectory directory;
  const fs::path cut = directory.path / "r.safetensors";
  drop_tensors(original, cut, {"hidden_states.1"});
  EXPECT_EQ(refused(cut, 1).kind, ErrorKind::input);
  EXPECT_NE(refused(cut, 1).message.find("hidden_states.1, which block 1 starts from"), std::string::npos);
  drop_tensors(original, cut, {"hidden_states.1", "grad."});
  EXPECT_EQ(refused(cut, 0).kind, ErrorKind::input);
  EXPECT_NE(refused(cut, 0).message.find("nothing of layer 0"), std::string::npos) << refused(cut, 0).message;
}

// ---- many steps

TEST(VerifyCurve, HoldsEachLossToAPartOfItselfAndNothingElse) {
  const TemporaryDirectory directory;
  const fs::path changed = directory.path / "r.safetensors";
  const std::string name = "llama-gqa-packed";
  copy_tensors(references() / name / "reference.safetensors", changed, [](const std::string& tensor, auto values) {
    if (tensor == "train.losses") values[7] *= 1.005f;
    if (tensor.starts_with("after.") || tensor == "train.grad_norms") values[0] += 0.1f;
  });
  const auto with = [&](std::optional<double> tolerance) {
    return verify(model_of(name), references() / name, changed, {.curve_tolerance = tolerance});
  };
  EXPECT_EQ(with({}).first_failure, "train.losses");
  EXPECT_TRUE(with({}).not_compared.empty());
  const Verification wide = with(0.006), narrow = with(0.004);
  EXPECT_TRUE(wide.ok) << describe(wide);
  EXPECT_EQ(wide.tensors.back().name, "train.losses");
  EXPECT_NEAR(wide.tensors.back().max_rel, 0.005, 1e-4);
  EXPECT_NE(std::ranges::find(wide.not_compared, "train.grad_norms"), wide.not_compared.end());
  EXPECT_NE(describe(wide).find("not compared: train.grad_norms"), std::string::npos);
  EXPECT_EQ(narrow.first_failure, "train.losses");
  EXPECT_EQ(narrow.tensors.back().worst, 7);
}

TEST(Verify, TakesGpt2WithAndWithoutThePrefix) {
  const auto without = [](const std::string& name) {
    const size_t at = name.find("transformer.");
    return at == std::string::npos ? name : name.substr(0, at) + name.substr(at + 12);
  };
  for (const std::string name : {"gpt2", "gpt2-packed"}) {
    const TemporaryDirectory directory;
    copy_tensors(references() / name / "model.safetensors", directory.path / "model.safetensors", {}, without);
    copy_tensors(references() / name / "reference.safetensors", directory.path / "reference.safetensors", {}, without);
    for (const fs::path& reference : {directory.path, references() / name}) {
      const Verification verification = verify(model_of(name), directory.path, reference / "reference.safetensors");
      EXPECT_TRUE(verification.ok) << describe(verification);
    }
  }
}

TEST(Verify, NamesWhatIsWrongWithAReference) {
  const Model model = model_of("gpt2");
  const ThreadPool pool(1);
  const TemporaryDirectory directory;
  const fs::path original = references() / "gpt2" / "reference.safetensors", changed = directory.path / "r.safetensors";
  const auto message = [&](const fs::path& reference) -> std::string {
    const auto result = verify_model(model, references() / "gpt2", reference, {}, pool);
    if (result.ok()) return "no error";
    EXPECT_EQ(result.error().kind, ErrorKind::input);
    return result.error().message;
  };
  EXPECT_NE(message(directory.path / "missing").find("missing"), std::string::npos);
  const auto renamed = [&](const std::string& from, const std::string& to) {
    copy_tensors(original, changed, {}, [&](const std::string& name) { return name == from ? to : name; });
    return message(changed);
  };
  EXPECT_NE(renamed("labels", "labls").find("labels"), std::string::npos);
  EXPECT_NE(renamed("grad.transformer.h.0.ln_1.weight", "grad.transformer.h.7.ln_1.weight").find("h.7"),
            std::string::npos);
  EXPECT_NE(renamed("logits", "hidden_states.3").find("hidden_states.3"), std::string::npos);
  copy_tensors(original, changed, {}, [](const std::string& name) {
    return name == "logits" ? "final_norm" : name == "final_norm" ? "logits" : name;
  });
  EXPECT_NE(message(changed).find("final_norm has shape [2,7,29], the model's is [2,7,12]"), std::string::npos);
  // The ids of another vocabulary.
  EXPECT_NE(message(references() / "gpt2-untied" / "reference.safetensors").find("input_ids"), std::string::npos);
  EXPECT_NE(message(references() / "llama" / "config.json").find("config.json"), std::string::npos);
}

// ---- threads

// Losses, norms and weights of a few steps, as bits.
std::vector<float> trained(const std::string& name, int threads) {
  const Model model = model_of(name);
  const ThreadPool pool(threads);
  const auto reference = Reference::open(references() / name / "reference.safetensors", model);
  EXPECT_TRUE(reference.ok()) << reference.error().message;
  ProgramSettings settings;
  settings.rows = reference->batch().rows;
  settings.tokens = reference->batch().sequence_length;
  auto programs = TrainingPrograms::create(model, settings, pool);
  EXPECT_TRUE(programs.ok()) << programs.error().message;
  EXPECT_TRUE(load_weights(references() / name, model, (*programs)->arena()).ok());
  std::vector<float> out;
  for (int64_t t = 1; t <= 5; ++t) {
    const RandomState random{7, static_cast<uint64_t>(t), 0, settings.rows};
    out.push_back(static_cast<float>(
        (*programs)->micro_step(reference->batch(), reference->loss_scale(), false, random).value()));
    out.push_back(static_cast<float>((*programs)->update(1e-3, t).value().grad_norm));
  }
  for (const ParameterSpec& parameter : model.parameters()) {
    const auto values = (*programs)->arena().variable(parameter.name).span<float>();
    out.insert(out.end(), values.begin(), values.end());
  }
  return out;
}

TEST(Threads, TheirNumberChangesNoBit) {
  for (const std::string name : {"gpt2", "gpt2-packed", "llama-gqa-packed", "llama-biases-head-dim", "gemma2-packed"}) {
    const std::vector<float> one = trained(name, 1);
    for (const int threads : {2, 3, 5, 8}) {
      const std::vector<float> many = trained(name, threads);
      ASSERT_EQ(many.size(), one.size());
      EXPECT_EQ(std::memcmp(many.data(), one.data(), one.size() * sizeof(float)), 0) << name << " on " << threads;
    }
  }
}

}  // namespace
}  // namespace ingot
