// Every op that has a kernel against its own reference evaluation, automatically for each example of it, and on several
// numbers of threads, which must give the same bits.
#include "runtime/bindings.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "base/rng.h"
#include "graph/builder.h"
#include "kernels/matmul/matmul_tiles.h"
#include "ops/interpret.h"
#include "ops/registry.h"
#include "runtime/program.h"

namespace ingot {
namespace {

RefTensor example_tensor(const OpExample& example, size_t i) {
  const Shape& shape = example.inputs[i].shape;
  if (i < example.values.size() && !example.values[i].empty()) return {shape, example.values[i]};
  RefTensor tensor{shape, {}};
  const uint64_t key = stream_key(i + 1, "example");
  for (int64_t k = 0; k < shape.elements(); ++k)
    tensor.data.push_back(static_cast<float>(example.low + (example.high - example.low) *
                                                               philox(key, static_cast<uint64_t>(k))[0] * 0x1p-32));
  return tensor;
}

// The tensor's bytes; its values become what the bytes stand for.
std::vector<std::byte> bytes_of(RefTensor& tensor, DType dtype) {
  std::vector<std::byte> bytes(tensor.data.size() * size_of(dtype));
  for (size_t i = 0; i < tensor.data.size(); ++i) {
    std::byte* at = bytes.data() + i * size_of(dtype);
    if (dtype == DType::f32) {
      const auto value = static_cast<float>(tensor.data[i]);
      std::memcpy(at, &value, 4);
    } else if (dtype == DType::i32) {
      const auto value = static_cast<int32_t>(tensor.data[i]);
      std::memcpy(at, &value, 4);
    } else if (dtype == DType::i8) {
      const auto value = static_cast<int8_t>(tensor.data[i]);
      std::memcpy(at, &value, 1);
    } else if (dtype == DType::u8) {
      const auto value = static_cast<uint8_t>(tensor.data[i]);
      std::memcpy(at, &value, 1);
    } else if (dtype == DType::bf16 || dtype == DType::f16) {
      const auto value = dtype == DType::bf16 ? bf16_from_float(static_cast<float>(tensor.data[i]))
                                              : f16_from_float(static_cast<float>(tensor.data[i]));
      std::memcpy(at, &value, 2);
      tensor.data[i] = dtype == DType::bf16 ? float_from_bf16(value) : float_from_f16(value);
    } else {
      ADD_FAILURE() << "a dtype that the test does not know";
    }
  }
  return bytes;
}

double element(const ConstTensorView& view, size_t i) {
  if (view.dtype == DType::f32) return view.as<float>()[i];
  if (view.dtype == DType::i32) return view.as<int32_t>()[i];
  if (view.dtype == DType::u8) return view.as<uint8_t>()[i];
  if (view.dtype == DType::bf16) return float_from_bf16(view.as<uint16_t>()[i]);
  return float_from_f16(view.as<uint16_t>()[i]);
}

class OpKernel : public ::testing::TestWithParam<const OpDef*> {};

// Which of a node's tensors are stored in 16 bits: scalars never are; `alike`: those of the first one's shape alone, as
// statistics and weights beside large tensors stay in f32.
struct Stored {
  DType dtype = DType::f32;
  bool alike = false;

  void apply(Type& type, const Shape& first) const {
    if (type.dtype == DType::f32 && type.shape.rank() > 0 && type.packed_bytes == 0 && (!alike || type.shape == first))
      type.dtype = dtype;
  }
};

std::optional<OpExample> stored_as(const Stored& stored, const OpDef& op, OpExample example) {
  const Shape first = example.inputs.empty() ? Shape() : example.inputs[0].shape;
  for (Type& type : example.inputs) stored.apply(type, first);
  if (!op.infer(example.inputs, example.attributes).ok()) return std::nullopt;
  return example;
}

// Of a result's largest entry. Attention of bf16 rounds its weights where the CPU multiplies pairs of bf16.
double tolerance_of(const OpDef& op, const OpExample& example, DType result) {
  const bool reads_bf16 =
      std::ranges::any_of(example.inputs, [](const Type& type) { return type.dtype == DType::bf16; });
  const bool in_pairs = kernels::best_bf16_product() != kernels::Bf16Product::widened;
  if (result == DType::f32 && in_pairs && reads_bf16 && std::string_view(op.name).starts_with("attention"))
    return 1.0 / 256;
  return result == DType::bf16 ? 1.0 / 128 : result == DType::f16 ? 1.0 / 1024 : 2e-6;
}

void check_example(const OpDef& op, const OpExample& example, const Stored& outputs_as = {}) {
  Graph graph;
  graph.name = op.name;
  Builder builder(graph);
  std::vector<ValueId> ids;
  std::map<std::string, RefTensor> sources;
  std::vector<std::vector<std::byte>> contents;
  std::vector<ProgramInput> inputs;
  std::vector<std::string> names;
  for (size_t i = 0; i < example.inputs.size(); ++i) names.push_back("in" + std::to_string(i));
  for (size_t i = 0; i < example.inputs.size(); ++i) {
    ids.push_back(builder.input(names[i], example.inputs[i]));
    sources[names[i]] = example_tensor(example, i);
    contents.push_back(bytes_of(sources[names[i]], example.inputs[i].dtype));
  }
  for (size_t i = 0; i < example.inputs.size(); ++i)
    inputs.push_back({names[i], {contents[i].data(), example.inputs[i].dtype, example.inputs[i].shape}});
  const auto outputs = builder.add_many(op, ids, example.attributes);
  for (const ValueId output : outputs)
    outputs_as.apply(graph.value(output).type, builder.shape(ids.empty() ? output : ids[0]));
  for (size_t i = 0; i < outputs.size(); ++i) builder.output("out" + std::to_string(i), outputs[i]);
  // A batch that is a part of a larger one: random ops must draw the numbers of their place in it.
  const Shape& leading = builder.shape(outputs[0]);
  const RandomState random{.seed = 3, .step = 5, .first_sequence = 2, .batch = leading.rank() > 0 ? leading[0] : 1};
  const auto expected = interpret_results(graph, sources, random);

  std::vector<std::vector<std::byte>> first;
  for (int threads : {1, 2, 3}) {
    const ThreadPool pool(threads);
    auto program = Program::create(graph, VariableLayout(), threads);
    ASSERT_TRUE(program.ok()) << program.error().message;
    auto arena = Arena::create({}, pool);
    ASSERT_TRUE(arena->reserve((*program)->plan().workspace_bytes, (*program)->scratch_bytes(), pool).ok());
    ASSERT_TRUE((*program)->run(*arena, pool, inputs, random).ok());
    for (size_t k = 0; k < outputs.size(); ++k) {
      const ConstTensorView got = (*program)->output(*arena, "out" + std::to_string(k));
      const std::vector<std::byte> bytes(got.data, got.data + got.bytes());
      if (threads == 1) {
        first.push_back(bytes);
      } else {
        EXPECT_EQ(bytes, first[k]) << op.name << ": output " << k << " on " << threads << " threads differs from one";
        continue;
      }
      const RefTensor& want = expected.at("out" + std::to_string(k));
      double largest = 1;
      for (double value : want.data)
        if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
      const double tolerance = tolerance_of(op, example, got.dtype);
      for (size_t i = 0; i < want.data.size(); ++i) {
        if (std::isnan(want.data[i])) {
          EXPECT_TRUE(std::isnan(element(got, i))) << op.name << " output " << k << " element " << i;
          continue;
        }
        if (std::isinf(want.data[i])) {
          EXPECT_EQ(element(got, i), want.data[i]) << op.name << " output " << k << " element " << i;
          continue;
        }
        ASSERT_NEAR(element(got, i), want.data[i], tolerance * largest)
            << op.name << " " << example.attributes.to_string() << " output " << k << " element " << i;
      }
    }
  }
}

TEST_P(OpKernel, AgreesWithTheReferenceAndIsTheSameOnAnyNumberOfThreads) {
  for (const OpExample& example : GetParam()->examples()) check_example(*GetParam(), example);
}

TEST_P(OpKernel, AgreesWithTheReferenceWhereValuesAreStoredIn16Bits) {
  for (const DType dtype : {DType::bf16, DType::f16})
    for (const OpExample& example : GetParam()->examples())
      for (const bool alike : {false, true}) {
        const Stored stored{dtype, alike};
        if (const auto narrow = stored_as(stored, *GetParam(), example)) check_example(*GetParam(), *narrow, stored);
      }
}

INSTANTIATE_TEST_SUITE_P(All, OpKernel, ::testing::ValuesIn(all_ops().begin(), all_ops().end()),
                         [](const auto& one) { return std::string(one.param->name); });

}  // namespace
}  // namespace ingot
