// The engine of distributed_decode.cc in C, with the same numbers: it prints the same line.
//
//   decode                 alone
//   mpirun -n 3 decode     each process is a rank
#include <pando/pando.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
  kLayers = 2,
  kHeads = 8,
  kKvHeads = 2,
  kHeadDim = 64,
  kTokenFloats = kKvHeads * kHeadDim,  // of a key or a value
  kQueryFloats = kHeads * kHeadDim,
  kPromptTokens = 5000,  // more than 64 slots of 64 tokens: every rank gets some
  kPromptFloats = kPromptTokens * kTokenFloats,
  kSteps = 8
};

// Ends the program where a call fails, without waiting for other ranks, which MPI would do at a normal end.
static void Leave(const char* sentence, void* user) {
  (void)user;
  fprintf(stderr, "decode: %s\n", sentence);
  _Exit(1);
}

static void Check(pando_status status) {
  if (status != PANDO_OK) Leave(pando_last_error(), NULL);
}

// Numbers in [-1, 1), the same on every machine and in every language.
static void FillWithNumbers(float* numbers, size_t count, uint32_t seed) {
  for (size_t i = 0; i < count; ++i) {
    seed = seed * 1664525u + 1013904223u;
    numbers[i] = (float)(seed >> 8) * 0x1p-23f - 1.0f;
  }
}

// FNV-1a over the bits.
static uint64_t Fingerprint(uint64_t so_far, const float* values, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    uint32_t bits = 0;
    memcpy(&bits, &values[i], sizeof(bits));
    so_far = (so_far ^ bits) * 0x100000001b3u;
  }
  return so_far;
}

static pando_communicator* Connect(void) {
  pando_communicator* communicator = NULL;
  pando_communicator_options options;
  Check(pando_communicator_options_init(&options));
  options.on_stuck = Leave;
  Check(pando_started_by_mpirun() ? pando_communicator_create_mpi(&options, &communicator)
                                  : pando_communicator_create_alone(&communicator));
  return communicator;
}

static pando_attention* MakeAttention(pando_communicator* communicator) {
  pando_attention* attention = NULL;
  pando_attention_options options;
  Check(pando_attention_options_init(&options));
  options.num_heads = kHeads;
  options.num_kv_heads = kKvHeads;
  options.head_dim = kHeadDim;
  options.num_layers = kLayers;
  Check(pando_attention_create(communicator, &options, &attention));
  return attention;
}

static void AppendPrompt(pando_attention* attention, int64_t sequence) {
  static float k[kPromptFloats];
  static float v[kPromptFloats];
  for (uint32_t layer = 0; layer < kLayers; ++layer) {
    FillWithNumbers(k, kPromptFloats, 2 * layer);
    FillWithNumbers(v, kPromptFloats, 2 * layer + 1);
    Check(pando_attention_append(attention, layer, sequence, k, kPromptFloats, v, kPromptFloats));
  }
}

// Every rank does the same and has every result: their fingerprint.
static uint64_t Generate(pando_attention* attention) {
  int64_t sequence = 0;
  Check(pando_attention_add_sequence(attention, &sequence));
  AppendPrompt(attention, sequence);

  uint64_t fingerprint = 0xcbf29ce484222325u;
  float x[kQueryFloats];
  float output[kQueryFloats];
  float lse[kHeads];
  FillWithNumbers(x, kQueryFloats, 2024);
  for (int64_t i = 0; i < kSteps * kLayers; ++i) {
    const int64_t layer = i % kLayers;
    const float* k = x;
    const float* v = x + kQueryFloats - kTokenFloats;
    const pando_sequence_queries last_token = {sequence, 1};
    Check(pando_attention_append(attention, layer, sequence, k, kTokenFloats, v, kTokenFloats));
    Check(pando_attention_decode(attention, layer, &last_token, 1, x, kQueryFloats, output, kQueryFloats, lse, kHeads));
    fingerprint = Fingerprint(fingerprint, output, kQueryFloats);
    fingerprint = Fingerprint(fingerprint, lse, kHeads);
    for (size_t j = 0; j < kQueryFloats; ++j) x[j] = 32 * output[j];
  }
  return fingerprint;
}

int main(void) {
  pando_communicator* communicator = Connect();
  pando_attention* attention = MakeAttention(communicator);
  const uint64_t fingerprint = Generate(attention);
  int64_t rank = 0;
  Check(pando_communicator_get_rank(communicator, &rank));
  if (rank == 0) printf("%d tokens, fingerprint %016llx\n", kSteps, (unsigned long long)fingerprint);
  pando_attention_destroy(attention);
  pando_communicator_destroy(communicator);
  return 0;
}
