// The tokenizer of a model file. A file that holds a vocabulary and no tensors will do.
//
//   Result<GgufFile> file = GgufFile::Open("model.gguf");
//   Result<Tokenizer> tokenizer = LoadTokenizer(*file);
#ifndef PANDO_SRC_ENGINE_LOAD_TOKENIZER_H_
#define PANDO_SRC_ENGINE_LOAD_TOKENIZER_H_

#include "pando/status.h"
#include "src/gguf/gguf_file.h"
#include "src/tokenizer/tokenizer.h"
#include "src/tokenizer/tokenizer_data.h"

namespace pando {

// What the file says, unchecked but for the types of its values. The data is a copy: it does not need the file.
Result<TokenizerData> ReadTokenizerData(const GgufFile& file);

// Fails with a sentence that names the file where it has no tokenizer, or one that is damaged or not known.
Result<Tokenizer> LoadTokenizer(const GgufFile& file);

}  // namespace pando

#endif  // PANDO_SRC_ENGINE_LOAD_TOKENIZER_H_
