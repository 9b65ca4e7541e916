// Overloaded: one callable made of several, for std::visit.
#pragma once

namespace ingot {

template <class... Fs>
struct Overloaded : Fs... {
  using Fs::operator()...;
};
template <class... Fs>
Overloaded(Fs...) -> Overloaded<Fs...>;

}  // namespace ingot
