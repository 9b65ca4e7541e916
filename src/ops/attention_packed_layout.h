// How attention_packed's rows are made of query, key and value heads; shared by it and its gradient.
#pragma once

#include <array>

#include "ops/attention.h"
#include "ops/attention_packed.h"

namespace ingot::attention_packed_layout {

struct Parts {
  RefTensor q, k, v;  // [B,T,H,D], [B,T,Hkv,D] twice
};
inline std::array<RefTensor*, 3> list(Parts& parts) {
  return {&parts.q, &parts.k, &parts.v};
}

// Zeros of the parts' shapes for rows [B,T,(H + 2·Hkv)·D].
Parts make_parts(const Shape& rows, const AttentionPackedAttributes& attributes);
Parts unpack(const RefTensor& qkv, const AttentionPackedAttributes& attributes);
void pack(Parts& parts, RefTensor& qkv);
// What is left of the attributes once the parts are apart.
inline AttentionAttributes unpacked(const AttentionPackedAttributes& a) {
  return {a.scale, a.window, a.dropout, a.stream, a.softcap};
}

}  // namespace ingot::attention_packed_layout
