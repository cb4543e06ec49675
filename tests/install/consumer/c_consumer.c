// The installed package from C: one token attends to itself, so the attention is its value.
#include <pando/pando.h>
#include <stdio.h>

static int Attend(pando_attention* attention, float* output) {
  const float k[8] = {1.0f};
  const float v[8] = {3.0f};
  const pando_sequence_queries last_token = {0, 1};
  int64_t sequence = -1;
  pando_status status = pando_attention_add_sequence(attention, &sequence);
  if (status == PANDO_OK) status = pando_attention_append(attention, 0, sequence, k, 8, v, 8);
  if (status == PANDO_OK) status = pando_attention_decode(attention, 0, &last_token, 1, k, 8, output, 8, NULL, 0);
  return status == PANDO_OK;
}

int main(void) {
  pando_attention_options options;
  pando_attention* attention = NULL;
  float output[8] = {0.0f};
  pando_attention_options_init(&options);
  options.head_dim = 8;
  const int ok = pando_attention_create_alone(&options, &attention) == PANDO_OK && Attend(attention, output);
  if (!ok) fprintf(stderr, "%s\n", pando_last_error());
  pando_attention_destroy(attention);
  printf("ok=%d attention=%g\n", ok, (double)output[0]);
  return 0;
}
