// The graphs of training: the micro-step (forward, loss, backward, gradients into their variables) and the evaluation.
// Both are the model's one description run through the pass pipeline.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "graph/graph.h"
#include "models/model.h"
#include "optim/update_graph.h"
#include "passes/pipeline.h"

namespace ingot {

struct StepGraphOptions {
  int64_t rows = 1;    // sequences of the batch
  int64_t tokens = 1;  // of each
  bool fuse = true;    // false: the plain ops as the model wrote them (training.mode eager)
  bool dropout = true;
  bool accumulate = false;          // gradients are added to what their variables hold
  std::vector<std::string> freeze;  // patterns of parameters without a gradient
  // Outputs too, under the names of a reference file: logits and hidden states; the loss's gradients by hidden states.
  bool keep_activations = false, keep_state_gradients = false;
};

// Called after each pass with its name and the graph as it is then.
using PassTrace = std::function<void(std::string_view pass, const Graph& graph)>;

// Inputs ids, positions, first_visible, targets i32 [rows,tokens] and loss_scale f32[] (1 / counted targets of the
// step); output "loss": this batch's part of the step's loss. Stores gradient_name(NAME) for every parameter that is
// not frozen.
Result<Graph> micro_step_graph(const Model& model, const StepGraphOptions& options, PassContext& context,
                               const PassTrace& trace = {});

// The same inputs and output without gradients.
Result<Graph> evaluation_graph(const Model& model, const StepGraphOptions& options, PassContext& context,
                               const PassTrace& trace = {});

// One block alone, cut out of the model's own forward graph: inputs "hidden" f32 [rows,tokens,C] (what the block takes
// in), "hidden_grad" (the loss's gradient by what it hands on), and those of Model::build that it reads; outputs
// "hidden_states.(layer+1)", gradient_name(NAME) of each of its parameters, and the gradient by "hidden",
// gradient_name("hidden_states.layer"). The sources are those that the block needs.
Result<Graph> block_graph(const Model& model, int64_t layer, const StepGraphOptions& options, PassContext& context);

// What comes after the blocks before `layer` (num_hidden_layers: after all): inputs "hidden" and those of a micro-step;
// outputs "final_norm", "loss", and the gradient by "hidden", gradient_name("hidden_states.layer").
Result<Graph> tail_graph(const Model& model, int64_t layer, const StepGraphOptions& options, PassContext& context);

// The model's parameters that are trained, in the model's order. Error (usage): a pattern that matches nothing, or
// nothing left to train.
Result<std::vector<TrainedParameter>> trained_parameters(const Model& model, const std::vector<std::string>& freeze);

}  // namespace ingot
