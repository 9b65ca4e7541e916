// ingot tokenizer train|encode|decode|info
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdio>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/json_text.h"
#include "base/parallel.h"
#include "base/system.h"
#include "command.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace ingot::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string json_string(std::string_view text) {
  return Json(std::string(text)).dump(-1, ' ', false, Json::error_handler_t::replace);
}

// Buffered bytes to stdout; flush() says whether all of them arrived.
class Output {
 public:
  void write(std::string_view text) {
    buffer_ += text;
    if (buffer_.size() >= kBuffered) send();
  }
  Status flush() {
    send();
    if (failed_ || std::fflush(stdout) != 0) return failed_error("writing to standard output failed");
    return {};
  }

 private:
  static constexpr size_t kBuffered = size_t{1} << 20;
  void send() {
    failed_ = failed_ || std::fwrite(buffer_.data(), 1, buffer_.size(), stdout) != buffer_.size();
    buffer_.clear();
  }
  std::string buffer_;
  bool failed_ = false;
};

Result<std::string> read_stdin() {
  std::string text;
  std::vector<char> block(size_t{1} << 20);
  while (const size_t size = std::fread(block.data(), 1, block.size(), stdin)) text.append(block.data(), size);
  if (std::ferror(stdin) != 0) return failed_error("reading standard input failed");
  return text;
}

// --- encode ---

struct EncodeFlags {
  std::string tokenizer;
  std::optional<std::string> text, chat;
  bool jsonl = false, special = false, add_special = false, json = false;
};

// Writes ids as numbers and as tokens, each token's JSON made once.
class IdWriter {
 public:
  explicit IdWriter(const Tokenizer& tokenizer)
      : tokenizer_(tokenizer), quoted_(static_cast<size_t>(tokenizer.vocab_size())) {}

  void numbers(std::span<const TokenId> ids, std::string_view separator, Output& out) const {
    std::string_view before;
    for (const TokenId id : ids) {
      out.write(before);
      out.write(fmt::format_int(id).c_str());
      before = separator;
    }
  }
  void json(std::span<const TokenId> ids, Output& out) {
    out.write("{\"ids\":[");
    numbers(ids, ",", out);
    out.write("],\"tokens\":[");
    std::string_view before;
    for (const TokenId id : ids) {
      std::string& quoted = quoted_[static_cast<size_t>(id)];
      if (quoted.empty()) quoted = json_string(tokenizer_.token_text(id));
      out.write(before);
      out.write(quoted);
      before = ",";
    }
    out.write("]}\n");
  }

 private:
  const Tokenizer& tokenizer_;
  std::vector<std::string> quoted_;
};

Status encode_lines(const Tokenizer& tokenizer, const std::string& input, EncodeOptions options) {
  Output out;
  IdWriter writer(tokenizer);
  std::vector<TokenId> ids;
  int64_t number = 0;
  for (size_t begin = 0; begin < input.size();) {
    const size_t end = std::min(input.find('\n', begin), input.size());
    ++number;
    const Json line = parse_json<Json>(std::string_view(input).substr(begin, end - begin));
    if (!line.is_string()) {
      INGOT_TRY(out.flush());
      return input_error("standard input, line {}: expected a JSON string, found '{}'", number,
                         std::string_view(input).substr(begin, std::min<size_t>(end - begin, 60)));
    }
    ids.clear();
    tokenizer.encode(line.get_ref<const std::string&>(), ids, options);
    writer.json(ids, out);
    begin = end + 1;
  }
  return out.flush();
}

// The messages in a file as the chat template beside the tokenizer writes them, to where an answer begins.
Result<std::string> chat_text(const fs::path& tokenizer, const std::string& file) {
  INGOT_ASSIGN(const std::string json, read_file(file));
  INGOT_ASSIGN(const auto messages, read_messages(json, file));
  INGOT_ASSIGN(const ChatTemplate chat,
               ChatTemplate::load(fs::is_directory(tokenizer) ? tokenizer : tokenizer.parent_path()));
  return chat.render(messages, true);
}

Status encode(const EncodeFlags& flags) {
  INGOT_ASSIGN(const Tokenizer tokenizer, Tokenizer::load(flags.tokenizer));
  EncodeOptions options{.parse_special = flags.special, .add_special = flags.add_special};
  std::string text;
  if (flags.chat) {
    INGOT_ASSIGN(text, chat_text(flags.tokenizer, *flags.chat));
    options.parse_special = true;  // a template writes its special tokens as text
  } else if (flags.text) {
    text = *flags.text;
  } else {
    INGOT_ASSIGN(text, read_stdin());
  }
  if (flags.jsonl) return encode_lines(tokenizer, text, options);
  const std::vector<TokenId> ids = tokenizer.encode(text, options);
  Output out;
  IdWriter writer(tokenizer);
  if (flags.json) {
    writer.json(ids, out);
  } else {
    writer.numbers(ids, " ", out);
    out.write("\n");
  }
  return out.flush();
}

// --- decode ---

struct DecodeFlags {
  std::string tokenizer;
  std::optional<std::string> ids;
  bool jsonl = false, skip_special = false, json = false;
};

Result<std::vector<TokenId>> parse_ids(std::string_view text, const Tokenizer& tokenizer, ErrorKind kind) {
  std::vector<TokenId> ids;
  constexpr std::string_view kSeparators = " ,\t\r\n[]";
  for (size_t at = text.find_first_not_of(kSeparators); at != std::string_view::npos;) {
    const size_t end = std::min(text.find_first_of(kSeparators, at), text.size());
    const std::string_view word = text.substr(at, end - at);
    TokenId id = -1;
    const auto [stop, error] = std::from_chars(word.data(), word.data() + word.size(), id);
    if (error != std::errc() || stop != word.data() + word.size() || id < 0 || id >= tokenizer.vocab_size()) {
      return Error{kind, fmt::format("'{}' is no token id: expected numbers from 0 to {}, with spaces between", word,
                                     tokenizer.vocab_size() - 1)};
    }
    ids.push_back(id);
    at = text.find_first_not_of(kSeparators, end);
  }
  return ids;
}

Status decode_lines(const Tokenizer& tokenizer, std::string_view input, bool skip_special) {
  Output out;
  int64_t number = 0;
  for (size_t begin = 0; begin < input.size();) {
    const size_t end = std::min(input.find('\n', begin), input.size());
    ++number;
    const auto ids = parse_ids(input.substr(begin, end - begin), tokenizer, ErrorKind::input);
    if (!ids.ok()) {
      INGOT_TRY(out.flush());
      return input_error("standard input, line {}: {}", number, ids.error().message);
    }
    out.write(json_string(tokenizer.decode(*ids, skip_special)));
    out.write("\n");
    begin = end + 1;
  }
  return out.flush();
}

Status decode(const DecodeFlags& flags) {
  INGOT_ASSIGN(const Tokenizer tokenizer, Tokenizer::load(flags.tokenizer));
  std::string given;
  if (flags.ids) {
    given = *flags.ids;
  } else {
    INGOT_ASSIGN(given, read_stdin());
  }
  if (flags.jsonl) return decode_lines(tokenizer, given, flags.skip_special);
  INGOT_ASSIGN(const std::vector<TokenId> ids,
               parse_ids(given, tokenizer, flags.ids ? ErrorKind::usage : ErrorKind::input));
  const std::string text = tokenizer.decode(ids, flags.skip_special);
  if (flags.json) {
    print_json({{"ids", ids}, {"text", text}});
    return {};
  }
  Output out;
  out.write(text);  // verbatim: a line end of our own only where a person looks at it
  if (isatty(STDOUT_FILENO) != 0) out.write("\n");
  return out.flush();
}

// --- info ---

struct InfoFlags {
  std::string tokenizer;
  bool json = false;
};

Json describe(const Tokenizer& tokenizer) {
  const auto or_null = [](std::optional<TokenId> id) { return id ? Json(*id) : Json(nullptr); };
  Json specials = Json::array();
  for (const TokenId id : tokenizer.special_ids())
    specials.push_back({{"id", id}, {"token", tokenizer.token_text(id)}});
  return {{"vocab_size", tokenizer.vocab_size()},  {"merges", tokenizer.merge_count()},
          {"bos_id", or_null(tokenizer.bos_id())}, {"eos_id", or_null(tokenizer.eos_id())},
          {"special_tokens", std::move(specials)}, {"fingerprint", hash_text(tokenizer.fingerprint())}};
}

Status info(const InfoFlags& flags) {
  INGOT_ASSIGN(const Tokenizer tokenizer, Tokenizer::load(flags.tokenizer));
  const Json facts = describe(tokenizer);
  if (flags.json) {
    print_json(facts);
    return {};
  }
  Output out;
  for (const auto& [name, value] : facts.items()) {
    if (!value.is_array())
      out.write(fmt::format("{:<15} {}\n", name, value.is_string() ? value.get<std::string>() : value.dump()));
  }
  out.write(fmt::format("{:<15} {}\n", "special tokens", facts["special_tokens"].size()));
  for (const Json& token : facts["special_tokens"]) {
    out.write(fmt::format("{:>15} {}\n", token["id"].get<TokenId>(), token["token"].get<std::string>()));
  }
  return out.flush();
}

// --- train ---

struct TokenizerTrainFlags {
  std::vector<std::string> inputs, special_tokens{"<|endoftext|>"};
  int64_t vocab_size = 0;
  std::string out, text_key = "text";
  int threads = 0;
  bool json = false;
};

// Lines of figures on stderr: redrawn on a terminal, now and then elsewhere.
class Progress {
 public:
  void show(int64_t merges, int64_t wanted) {
    const bool last = merges == wanted;
    const double now = seconds_since(start_);
    if (!last && now - shown_ < (terminal_ ? 0.2 : 10.0)) return;
    shown_ = now;
    const double rate = static_cast<double>(merges) / std::max(now, 1e-9);
    fmt::print(stderr, "{}merges {}/{} ({}%), {:.0f}/s, {:.0f} s left{}", terminal_ ? "\r" : "", merges, wanted,
               merges * 100 / wanted, rate, static_cast<double>(wanted - merges) / std::max(rate, 1e-9),
               terminal_ && !last ? "   " : "\n");
    std::fflush(stderr);
  }

 private:
  bool terminal_ = isatty(STDERR_FILENO) != 0;
  Clock::time_point start_ = Clock::now();
  double shown_ = 0;
};

// The documents of the input files: of a .jsonl each line's string, or its text_key; of any other file all of it.
struct Corpus {
  std::vector<MappedFile> files;
  std::vector<std::unique_ptr<std::string>> lines;
  std::vector<std::string_view> documents;
  int64_t bytes = 0;
};

Status add_lines(std::string_view text, const std::string& path, const std::string& key, Corpus& corpus) {
  int64_t number = 0;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    ++number;
    const std::string_view line = text.substr(begin, end - begin);
    begin = end + 1;
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    Json value = parse_json<Json>(line);
    if (value.is_object() && value.contains(key)) value = Json(value[key]);
    if (!value.is_string())
      return input_error("{}, line {}: expected a JSON string or an object with the string '{}'", path, number, key);
    corpus.lines.push_back(std::make_unique<std::string>(std::move(value.get_ref<std::string&>())));
    corpus.documents.push_back(*corpus.lines.back());
  }
  return {};
}

Result<Corpus> read_corpus(const TokenizerTrainFlags& flags) {
  Corpus corpus;
  for (const std::string& path : flags.inputs) {
    INGOT_ASSIGN(MappedFile file, MappedFile::open(path));
    if (fs::path(path).extension() == ".jsonl") {
      INGOT_TRY(add_lines(file.text(), path, flags.text_key, corpus));
    } else {
      corpus.documents.push_back(file.text());
      corpus.files.push_back(std::move(file));
    }
  }
  for (const std::string_view document : corpus.documents) corpus.bytes += static_cast<int64_t>(document.size());
  return corpus;
}

Status train(const TokenizerTrainFlags& flags) {
  const auto start = Clock::now();
  INGOT_ASSIGN(const Corpus corpus, read_corpus(flags));
  const ThreadPool pool(default_threads(flags.threads));
  Progress progress;
  BpeTrainOptions options;
  options.vocab_size = flags.vocab_size;
  options.special_tokens = flags.special_tokens;
  options.progress = [&](int64_t merges, int64_t wanted) { progress.show(merges, wanted); };
  INGOT_ASSIGN(const Tokenizer tokenizer, train_bpe(corpus.documents, options, pool));
  INGOT_TRY(tokenizer.save(flags.out));
  const double seconds = seconds_since(start);
  if (flags.json) {
    Json facts = describe(tokenizer);
    facts["path"] = flags.out;
    facts["documents"] = corpus.documents.size();
    facts["bytes"] = corpus.bytes;
    facts["seconds"] = seconds;
    print_json(facts);
    return {};
  }
  fmt::print(stderr, "{}: {} tokens from {:.1f} MB of text in {:.1f} s ({:.1f} MB/s)\n", flags.out,
             tokenizer.vocab_size(), static_cast<double>(corpus.bytes) / 1e6, seconds,
             static_cast<double>(corpus.bytes) / 1e6 / std::max(seconds, 1e-9));
  return {};
}

// --- flags ---

void add_tokenizer_flag(CLI::App& verb, std::string& path) {
  verb.add_option("--tokenizer", path, "tokenizer.json or a SentencePiece .model, or a directory that holds one")
      ->required();
}

void add_encode_verb(CLI::App& parent, Command& command) {
  auto flags = std::make_shared<EncodeFlags>();
  CLI::App* verb = parent.add_subcommand("encode", "text to token ids");
  add_tokenizer_flag(*verb, flags->tokenizer);
  auto* text =
      verb->add_option("--text", flags->text, "the text; without it standard input is read to its end, verbatim");
  auto* lines =
      verb->add_flag("--jsonl", flags->jsonl,
                     "each line of standard input is a JSON string, each line of the output its {ids, tokens}")
          ->excludes(text);
  verb->add_option("--chat", flags->chat,
                   "a JSON file of messages ([{\"role\": \"user\", \"content\": …}, …]), written by the chat template "
                   "beside the tokenizer")
      ->excludes(text)
      ->excludes(lines);
  verb->add_flag("--special", flags->special, "special tokens written in the text count as such");
  verb->add_flag("--add-special", flags->add_special, "add what the post-processor adds (BOS, EOS)");
  verb->add_flag("--json", flags->json, "print {ids, tokens}");
  verb->footer("Example: ingot tokenizer encode --tokenizer model/ --text \"Hello world\" --json");
  verb->callback([flags, &command] { command.run = [flags] { return encode(*flags); }; });
}

void add_decode_verb(CLI::App& parent, Command& command) {
  auto flags = std::make_shared<DecodeFlags>();
  CLI::App* verb = parent.add_subcommand("decode", "token ids to text, byte for byte");
  add_tokenizer_flag(*verb, flags->tokenizer);
  auto* ids = verb->add_option("--ids", flags->ids,
                               "the ids, with spaces between; without it they are read from standard input");
  verb->add_flag("--jsonl", flags->jsonl,
                 "each line of standard input holds the ids of a text, each line of the output is that text as a JSON "
                 "string")
      ->excludes(ids);
  verb->add_flag("--skip-special", flags->skip_special, "leave special tokens out");
  verb->add_flag("--json", flags->json, "print {ids, text}");
  verb->footer("Example: ingot tokenizer decode --tokenizer model/ --ids \"15496 995\"");
  verb->callback([flags, &command] { command.run = [flags] { return decode(*flags); }; });
}

void add_info_verb(CLI::App& parent, Command& command) {
  auto flags = std::make_shared<InfoFlags>();
  CLI::App* verb = parent.add_subcommand("info", "what a tokenizer holds");
  add_tokenizer_flag(*verb, flags->tokenizer);
  verb->add_flag("--json", flags->json, "print {vocab_size, merges, bos_id, eos_id, special_tokens, fingerprint}");
  verb->footer("Example: ingot tokenizer info --tokenizer model/");
  verb->callback([flags, &command] { command.run = [flags] { return info(*flags); }; });
}

void add_train_verb(CLI::App& parent, Command& command) {
  auto flags = std::make_shared<TokenizerTrainFlags>();
  CLI::App* verb = parent.add_subcommand("train", "train a byte-level BPE on text");
  verb->add_option("--input", flags->inputs, "text files; of a .jsonl each line is a document")->required();
  verb->add_option("--vocab-size", flags->vocab_size, "tokens, the 256 bytes and the special ones included")
      ->required();
  verb->add_option("--out", flags->out, "the tokenizer.json to write")->required();
  verb->add_option("--special-token", flags->special_tokens, "special tokens, first in the vocabulary")
      ->capture_default_str();
  verb->add_option("--text-key", flags->text_key, "of .jsonl objects, the key that holds the text")
      ->capture_default_str();
  verb->add_option("--threads", flags->threads, "threads (default: OMP_NUM_THREADS, else the usable cores)")
      ->check(CLI::PositiveNumber);
  verb->add_flag("--json", flags->json, "print what was trained");
  verb->footer("Example: ingot tokenizer train --input corpus/*.txt --vocab-size 16384 --out tokenizer.json");
  verb->callback([flags, &command] { command.run = [flags] { return train(*flags); }; });
}

}  // namespace

void add_tokenizer(CLI::App& app, Command& command) {
  CLI::App* verb = app.add_subcommand("tokenizer", "train a tokenizer, or use one");
  verb->require_subcommand(1);
  verb->footer("Example: ingot tokenizer encode --tokenizer model/ --text \"Hello world\"");
  add_train_verb(*verb, command);
  add_encode_verb(*verb, command);
  add_decode_verb(*verb, command);
  add_info_verb(*verb, command);
}

}  // namespace ingot::cli
