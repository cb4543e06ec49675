// The files of a saved chat. FILE names the generation that belongs to it, a random id, whose rank files lie beside it:
//
//   trip.chat                               the chat; names 3f0c...
//   trip.chat.3f0c....0-of-2                its cache, one file per rank
//   trip.chat.91d2....partial               a save that is under way: what will be FILE; locked
//   trip.chat.91d2....0-of-2                its cache so far
//
// One rename of the partial file to FILE switches from one generation to the next. What a killed save leaves is never
// named by FILE, and has no partial file or one that nobody has locked.
#ifndef PANDO_SRC_ENGINE_CHAT_GENERATIONS_H_
#define PANDO_SRC_ENGINE_CHAT_GENERATIONS_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace pando {

// FILE.ID, the prefix of the rank files of a generation.
std::string GenerationPrefix(const std::string& path, uint64_t id);
// What becomes FILE.
std::string GenerationPartial(const std::string& path, uint64_t id);

// Removes every generation of `path` but the one that FILE names and those that are being saved. `named` says which
// one FILE names at the moment of the call; none if there is no FILE. A file that cannot be removed stays.
void RemoveOtherGenerations(const std::string& path, const std::function<std::optional<uint64_t>()>& named);

// Removes the rank files FILE.RANK-of-RANKS of the format before there were generations.
void RemoveUnnamedRankFiles(const std::string& path);

}  // namespace pando

#endif  // PANDO_SRC_ENGINE_CHAT_GENERATIONS_H_
