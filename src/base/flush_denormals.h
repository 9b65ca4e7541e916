// While an object of this type lives, the thread computes with denormal numbers (below about 1.2e-38 in fp32) taken and
// written as zero. Processors handle them in microcode, ten to a hundred times slower, and training makes them: a
// moment of AdamW whose row gets no gradient shrinks towards them and then stays there, as does the tail of an
// activation.
#pragma once

#include <cstdint>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace ingot {

class FlushDenormals {
 public:
  FlushDenormals() : before_(read()) { write(before_ | kFlush); }
  ~FlushDenormals() { write(before_); }
  FlushDenormals(const FlushDenormals&) = delete;
  FlushDenormals& operator=(const FlushDenormals&) = delete;

 private:
#if defined(__x86_64__)
  using Control = uint32_t;
  static constexpr Control kFlush = 0x8040;  // MXCSR: flush to zero, denormals are zero
  static Control read() {
    return _mm_getcsr();
  }
  static void write(Control control) {
    _mm_setcsr(control);
  }
#elif defined(__aarch64__)
  using Control = uint64_t;
  static constexpr Control kFlush = 1u << 24;  // FPCR.FZ
  static Control read() {
    Control control;
    __asm__ volatile("mrs %0, fpcr" : "=r"(control));
    return control;
  }
  static void write(Control control) {
    __asm__ volatile("msr fpcr, %0" : : "r"(control));
  }
#else
  using Control = uint32_t;
  static constexpr Control kFlush = 0;
  static Control read() {
    return 0;
  }
  static void write(Control) {}
#endif
  Control before_;
};

}  // namespace ingot
