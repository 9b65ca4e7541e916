#include "data/describe.h"

#include "data/testing.h"

namespace ingot {
namespace {

using namespace data_testing;  // NOLINT: helpers of this folder's tests

TEST(Describe, ARowIsShownTokenByToken) {
  const auto source = make_sequences(Segments::all(fake_store({3, 5})), {4, true, true}).value();
  Batch batch;
  batch.resize(2, 6);
  ASSERT_TRUE(fill_batch_row(*source, 0, 12, 0, batch).ok());
  fill_empty_row(7, 1, batch);
  const std::string text = describe_batch(batch, nullptr, {1, 5});
  EXPECT_EQ(text,
            "2 rows x 6 tokens, 2 counted targets\n"
            "row 0, sample 12: 4 tokens, 2 documents, 2 counted targets, 2 of padding\n"
            "       t       id   target  start position  \n"
            "       0        0        1      0        0\n"
            "       1        1        2      0        1\n"
            "       2        2        -      0        2\n"
            "       3        3        -      3        0\n"
            "       4        0        -      4        0\n"
            "  … 1 more tokens\n"
            "… 1 more rows\n");
}

}  // namespace
}  // namespace ingot
