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
  bool keep_activations = false;    // logits and hidden states are outputs too, under the names of a reference file
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

// The model's parameters that are trained, in the model's order. Error (usage): a pattern that matches nothing, or
// nothing left to train.
Result<std::vector<TrainedParameter>> trained_parameters(const Model& model, const std::vector<std::string>& freeze);

}  // namespace ingot
