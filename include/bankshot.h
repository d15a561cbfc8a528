/*
 * bankshot.h: the C API of Bankshot, an inference engine for Qwen's hybrid models. docs/capi.md is its guide.
 *
 * This file is made of src/capi by cbindgen: after a change there, BLESS=1 cargo test --release --test capi header.
 *
 * Rules that hold for every function:
 *  - Results go through out-parameters, which are written only when the call returns BANKSHOT_OK.
 *  - A function that fails leaves a text for bankshot_last_error() on the calling thread: the function, what was
 *    expected, what was got.
 *  - Nothing throws, exits, aborts or prints, or changes locale or the current directory. Environment and signals are
 *    touched by bankshot_engine_open() alone; its text says how.
 *  - Handles are opaque, and null is no handle: it is BANKSHOT_ERR_NULL, but destroy calls do nothing with it. A handle
 *    that was destroyed cannot be told from a live one: using it is undefined behaviour. What stands behind a handle is
 *    kept as long as another handle needs it, so that the order of destroy calls is free.
 *  - Texts are UTF-8, given as pointer and number of bytes, and need no closing zero. Null with 0 bytes is empty.
 *  - Buffers: with a cap of 0 a call writes only to *needed how many values or bytes there are. With less room than
 *    needed it is BANKSHOT_ERR_BUFFER and writes nothing. No closing zero is written.
 *  - Sized structs: the caller sets struct_size to sizeof(the struct). Zero is the default of every other field. A size
 *    below that of version 1.0 is BANKSHOT_ERR_STRUCT. Fields of a newer header than the library's have to be zero:
 *    else it is BANKSHOT_ERR_UNSUPPORTED. In a struct that the library fills they become zero.
 *  - Flags that the library does not know are BANKSHOT_ERR_UNSUPPORTED.
 *  - Memory belongs to the side that allocated it. What the caller's pointers lead to is used during the call alone.
 *  - Threads: calls marked "any" can be made by any thread at any time, also on one handle. Calls marked "one at a time
 *    for each session" are the caller's to serialise; if several threads make them at once all the same, they wait for
 *    each other, in no promised order. Sessions of one engine take turns step by step, in the order of their calls.
 *  - No function of the caller's is called.
 */

#ifndef BANKSHOT_H
#define BANKSHOT_H

#include <stddef.h>
#include <stdint.h>

// The call did what it says.
#define BANKSHOT_OK 0

// 1-9 are the caller's mistakes. A pointer that is needed is null.
#define BANKSHOT_ERR_NULL 1

// A value is out of range, a text is not UTF-8, a token is not in the vocabulary.
#define BANKSHOT_ERR_VALUE 2

// A struct_size is not one that this library knows.
#define BANKSHOT_ERR_STRUCT 3

// Known or set by a newer header, and not possible in this version or on this device.
#define BANKSHOT_ERR_UNSUPPORTED 4

// No file, device or saved session of that name.
#define BANKSHOT_ERR_NOT_FOUND 5

// Not now: the engine is still loading or closed, the answer has ended, another saved session needs this one.
#define BANKSHOT_ERR_STATE 6

// 10-19 are resources. The host has not enough memory.
#define BANKSHOT_ERR_MEMORY 10

// A card has not enough memory.
#define BANKSHOT_ERR_DEVICE_MEMORY 11

// The context has no place for so many tokens.
#define BANKSHOT_ERR_CONTEXT 12

// The caller's buffer is too small.
#define BANKSHOT_ERR_BUFFER 13

// A file cannot be read or written.
#define BANKSHOT_ERR_IO 14

// The disk is full.
#define BANKSHOT_ERR_DISK 15

// 20-29 are the device. An operation failed, or code did not build; the engine stops working.
#define BANKSHOT_ERR_DEVICE 20

// A device is lost.
#define BANKSHOT_ERR_DEVICE_LOST 21

// The engine stopped working after an earlier error, or the handle did after BANKSHOT_ERR_INTERNAL. Destroy it and
// open another one.
#define BANKSHOT_ERR_POISONED 22

// 30-39 are files. A model's file is damaged, incomplete or not supported.
#define BANKSHOT_ERR_MODEL 30

// A saved session is damaged, of another version, or another model's.
#define BANKSHOT_ERR_SESSION 31

// The model's chat template failed.
#define BANKSHOT_ERR_TEMPLATE 32

// The call was cancelled.
#define BANKSHOT_ERR_CANCELLED 40

// What was waited for did not happen in time.
#define BANKSHOT_ERR_TIMEOUT 41

// 90 and above are mistakes of this library.
#define BANKSHOT_ERR_INTERNAL 90

// Version of this header. A library of the same major and a higher minor version can be used with it.
#define BANKSHOT_ABI_MAJOR 1

// Goes up when functions, fields or statuses are added.
#define BANKSHOT_ABI_MINOR 0

// As a time: without a limit. As a number of bytes or tokens where 0 is the default: none.
#define BANKSHOT_NONE UINT64_MAX

// Type of cached keys and values: 16 bits, the default.
#define BANKSHOT_KV_F16 1

// 32 bits.
#define BANKSHOT_KV_F32 2

// How several cards share the work: each computes some layers. Without a wish the plan's own estimate decides.
#define BANKSHOT_SPLIT_LAYER 1

// Each computes some rows of every large matrix.
#define BANKSHOT_SPLIT_TENSOR 2

// The model is the small one that is part of the library; there is no path then.
#define BANKSHOT_ENGINE_DEMO 1

// The file and the devices are being looked at.
#define BANKSHOT_STAGE_OPENING 0

// Kernels are built and weights are uploaded.
#define BANKSHOT_STAGE_LOADING 1

// The engine can be used.
#define BANKSHOT_STAGE_READY 2

// The engine could not be opened; bankshot_engine_wait says why.
#define BANKSHOT_STAGE_FAILED 3

// The engine was closed.
#define BANKSHOT_STAGE_CLOSED 4

// The answer goes on.
#define BANKSHOT_FINISH_NONE 0

// The model chose a token that ends its turn.
#define BANKSHOT_FINISH_STOP 1

// As many tokens as were asked for.
#define BANKSHOT_FINISH_LENGTH 2

// The context is full.
#define BANKSHOT_FINISH_CONTEXT 3

// Put the beginning-of-sequence token in front, where the model asks for one.
#define BANKSHOT_TOKENIZE_BEGIN 1

// Read names of special tokens as these tokens.
#define BANKSHOT_TOKENIZE_SPECIAL 2

// Write names of special tokens, which are left out otherwise.
#define BANKSHOT_DETOKENIZE_SPECIAL 1

// End with the opening of the assistant's turn.
#define BANKSHOT_RENDER_ANSWER 1

// Ask the template for thoughts.
#define BANKSHOT_RENDER_THINK 2

// Ask the template to leave thoughts out. With neither the choice is the template's.
#define BANKSHOT_RENDER_NO_THINK 4

// Keep the logits that each token is chosen from.
#define BANKSHOT_SESSION_LOGITS 1

// Go on behind tokens that end the model's turn.
#define BANKSHOT_SESSION_IGNORE_STOP 2

// Compress the file.
#define BANKSHOT_SAVE_COMPRESS 1

// Write only what the session has more than when it was last saved or restored, if that was in the same folder.
#define BANKSHOT_SAVE_DELTA 2

// Read the whole file and compare all sums.
#define BANKSHOT_INSPECT_VERIFY 1

// Give its rows to sessions that are deltas of it, before it is deleted.
#define BANKSHOT_DELETE_REPARENT 1

// Nothing is written.
#define BANKSHOT_LOG_OFF 0

// What went wrong.
#define BANKSHOT_LOG_ERROR 1

// And what may go wrong.
#define BANKSHOT_LOG_WARN 2

// And what happens.
#define BANKSHOT_LOG_INFO 3

// And details.
#define BANKSHOT_LOG_DEBUG 4

// A loaded model. Sessions keep what they need of it alive.
typedef struct bankshot_engine bankshot_engine;

// A sequence of tokens on an engine.
typedef struct bankshot_session bankshot_session;

// What a call returns: BANKSHOT_OK, or the number of an error. Later versions may have more numbers; none is ever
// changed.
typedef int32_t bankshot_status;

// Where and how a model runs. Set struct_size to sizeof(bankshot_engine_options) and all else to 0, then what is
// wanted.
typedef struct bankshot_engine_options {
    uint32_t struct_size;
    // 0 or BANKSHOT_ENGINE_DEMO.
    uint32_t flags;
    // GGUF file of the model, the first one of several.
    const char *model_path;
    uint64_t model_path_bytes;
    // Cards: numbers of devices, "cpu" or "gpu", with commas between them; "gpu:2" are the first two GPUs. Null: the
    // first GPU, else the CPU.
    const char *device;
    uint64_t device_bytes;
    // GGUF file whose n-gram table is read instead of the model's, or null.
    const char *ngram_path;
    uint64_t ngram_path_bytes;
    // Profile of the experts that are used most, or null.
    const char *expert_profile_path;
    uint64_t expert_profile_path_bytes;
    // Tokens of context. 0: the model's own, at most 8192.
    uint64_t context;
    // Most tokens that are computed together. 0: the default. Results do not depend on it.
    uint64_t chunk;
    // 0 or a BANKSHOT_KV number.
    uint32_t kv;
    // 0 or a BANKSHOT_SPLIT number.
    uint32_t split;
    // Most bytes of each card for routed experts. 0: all that are left.
    uint64_t expert_bytes;
    // Most bytes of host memory for routed experts. 0: all that are free.
    uint64_t host_expert_bytes;
    // Bytes of each card for snapshots of sequences; 0 or BANKSHOT_NONE: none.
    uint64_t bank_bytes;
    // Bytes of host memory for them; BANKSHOT_NONE: none. 0: none if bank_bytes is not 0, else up to 1 GiB.
    uint64_t host_bank_bytes;
    // Tokens of a prompt after which a snapshot is taken. 0: 2048. BANKSHOT_NONE: only behind turns and at its end.
    uint64_t bank_every;
    // Most bytes of the n-gram table's rows in memory. 0: 64 MiB. BANKSHOT_NONE: none.
    uint64_t ngram_cache_bytes;
} bankshot_engine_options;

// What opening an engine has done so far. Set struct_size before the call.
typedef struct bankshot_progress {
    uint32_t struct_size;
    // A BANKSHOT_STAGE number.
    uint32_t stage;
    // Kernel modules that are ready, and all.
    uint64_t kernels_done;
    uint64_t kernels_total;
    // Bytes of weights that are on the cards, and all.
    uint64_t weight_bytes_done;
    uint64_t weight_bytes_total;
    // Bytes that were read from the model's files.
    uint64_t read_bytes;
} bankshot_progress;

// Sizes of an engine that is ready. Set struct_size before the call.
typedef struct bankshot_info {
    uint32_t struct_size;
    uint32_t cards;
    // Tokens that a session can have.
    uint64_t context;
    // Token ids are less than this; so many logits has a token.
    uint64_t vocabulary;
    // Most tokens that are computed together.
    uint64_t chunk;
} bankshot_info;

// A turn of a conversation. Its size is fixed for all versions.
typedef struct bankshot_message {
    // "system", "user", "assistant" or what else the template knows.
    const char *role;
    uint64_t role_bytes;
    const char *content;
    uint64_t content_bytes;
} bankshot_message;

// How a session answers. Set struct_size, and all else to 0, then what is wanted.
typedef struct bankshot_session_options {
    uint32_t struct_size;
    // BANKSHOT_SESSION flags.
    uint32_t flags;
    // Most tokens of an answer. 0: as many as the context holds.
    uint64_t max_tokens;
} bankshot_session_options;

// A token that was chosen. Set struct_size before the call.
typedef struct bankshot_event {
    uint32_t struct_size;
    uint32_t id;
    // A BANKSHOT_FINISH number: why the answer ends with this token.
    uint32_t finish;
    // 0.
    uint32_t reserved;
    // Bytes that bankshot_session_text has for this token; none if they end inside a character, or the token has no
    // text.
    uint64_t text_bytes;
    // Tokens of the session, this one among them.
    uint64_t tokens;
} bankshot_event;

// What a session has needed so far. Set struct_size before the call.
typedef struct bankshot_stats {
    uint32_t struct_size;
    // Why the answer has ended, a BANKSHOT_FINISH number.
    uint32_t finish;
    // Tokens of the session.
    uint64_t tokens;
    // Tokens that were computed, some of them perhaps more than once.
    uint64_t computed_tokens;
    // Tokens that were not computed, because their state was known.
    uint64_t recalled_tokens;
    // Tokens that were chosen.
    uint64_t chosen_tokens;
    // How often the session had to make the engine its own.
    uint64_t switches;
} bankshot_stats;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Version of the library's interface.
// Ownership: none changes. Threads: any.
bankshot_status bankshot_abi_version(uint32_t *major, uint32_t *minor);

// What the library is and can do, as JSON: version, architectures, formats of weights.
// Ownership: the buffer is the caller's. Threads: any.
bankshot_status bankshot_features(char *buffer, size_t cap, size_t *needed);

// Copies the text of this thread's last call that failed into a buffer, cut to cap bytes with a closing zero, and
// returns its whole length without the zero. The buffer may be null when cap is 0.
// Ownership: the buffer is the caller's. Threads: any; each has its own text.
size_t bankshot_last_error(char *buffer, size_t cap);

// Lets the library write lines of a level and below to a file descriptor; without this call it writes nothing. A
// further call changes both; BANKSHOT_LOG_OFF ends it, whatever the descriptor. BANKSHOT_ERR_STATE: a program in Rust
// has its own listener.
// Ownership: the library makes a descriptor of its own for the same file, so that the caller may close the given one.
// Threads: any.
bankshot_status bankshot_log_to_fd(int32_t fd, uint32_t level);

// Begins to open an engine and returns: a thread of the library builds kernels and loads weights meanwhile. Wrong
// options are an error of this call, all else is one of bankshot_engine_wait. The first call of a process lists the
// devices on the calling thread. Before that it sets OCL_ICD_FILENAMES in the environment, if neither that nor
// OCL_ICD_VENDORS is set; the SYCL runtime sets ZES_ENABLE_SYSMAN. While kernels are built, the OpenCL CPU driver has
// handlers for signals; before the engine is ready, the program's own are put back.
// Ownership: options are read during the call; *out is the caller's, who destroys it. Threads: any, but no other
// thread may use the environment during the first call of a process.
bankshot_status bankshot_engine_open(const struct bankshot_engine_options *options, struct bankshot_engine **out);

// What opening the engine has done so far; it can be asked again and again.
// Ownership: none changes. Threads: any.
bankshot_status bankshot_engine_progress(const struct bankshot_engine *engine, struct bankshot_progress *progress);

// Waits until the engine is ready. BANKSHOT_ERR_TIMEOUT: it is not, and can be waited for again. Any other error is
// why it could not be opened.
// Ownership: none changes. Threads: any.
bankshot_status bankshot_engine_wait(const struct bankshot_engine *engine, uint64_t timeout_ms);

// Sizes of the engine.
// Ownership: none changes. Threads: any.
bankshot_status bankshot_engine_info(const struct bankshot_engine *engine, struct bankshot_info *info);

// The plan by which the engine runs, as JSON; `bankshot plan --json` prints the same.
// Ownership: the buffer is the caller's. Threads: any.
bankshot_status bankshot_engine_plan(const struct bankshot_engine *engine, char *buffer, size_t cap, size_t *needed);

// Counters of the engine as JSON: rows of the n-gram table, experts, snapshots; null where the model or the engine has
// none. They go on counting between two calls. Waits for the running step or chunk.
// Ownership: the buffer is the caller's. Threads: any.
bankshot_status bankshot_engine_counters(const struct bankshot_engine *engine,
                                         char *buffer,
                                         size_t cap,
                                         size_t *needed);

// Token ids of a text; flags are those of BANKSHOT_TOKENIZE.
// Ownership: the text is read during the call, the buffer is the caller's. Threads: any.
bankshot_status bankshot_engine_tokenize(const struct bankshot_engine *engine,
                                         const char *text,
                                         uint64_t text_bytes,
                                         uint32_t flags,
                                         uint32_t *ids,
                                         size_t cap,
                                         size_t *needed);

// Text of token ids, in UTF-8 and without a closing zero; flags are those of BANKSHOT_DETOKENIZE. Bytes that are no
// character become U+FFFD.
// Ownership: the ids are read during the call, the buffer is the caller's. Threads: any.
bankshot_status bankshot_engine_detokenize(const struct bankshot_engine *engine,
                                           const uint32_t *ids,
                                           uint64_t count,
                                           uint32_t flags,
                                           char *buffer,
                                           size_t cap,
                                           size_t *needed);

// A conversation in the model's own form, in UTF-8 and without a closing zero, to be fed as text; flags are those of
// BANKSHOT_RENDER.
// Ownership: the messages are read during the call, the buffer is the caller's. Threads: any.
bankshot_status bankshot_engine_render(const struct bankshot_engine *engine,
                                       const struct bankshot_message *messages,
                                       uint64_t count,
                                       uint32_t flags,
                                       char *buffer,
                                       size_t cap,
                                       size_t *needed);

// Waits for the running step or chunk and frees everything in order; calls of sessions then give BANKSHOT_ERR_STATE.
// BANKSHOT_ERR_TIMEOUT: the engine is still loading or at work, will take no further work, and can be closed again.
// Closing what is closed is no error.
// Ownership: the handle is still to be destroyed. Threads: any.
bankshot_status bankshot_engine_close(const struct bankshot_engine *engine, uint64_t deadline_ms);

// Destroys a handle; null does nothing. Waits for the end of loading. What the engine has is freed when the last of
// its sessions is destroyed, too, unless it was closed before.
// Ownership: the handle is gone, and must not be used again: that cannot be noticed. Threads: any, while no other call
// uses the handle.
void bankshot_engine_destroy(struct bankshot_engine *engine);

// Begins a session without tokens; options may be null.
// Ownership: *out is the caller's, who destroys it; it keeps what it needs of the engine alive. Threads: any.
bankshot_status bankshot_session_create(const struct bankshot_engine *engine,
                                        const struct bankshot_session_options *options,
                                        struct bankshot_session **out);

// Destroys a session; null does nothing. If its engine's handle is destroyed and this is the last session, the engine
// is freed, which waits for its devices, 30 s at most.
// Ownership: the handle is gone, and must not be used again: that cannot be noticed. Threads: any, while no other call
// uses the handle.
void bankshot_session_destroy(struct bankshot_session *session);

// Begins another answer behind all tokens that there are.
// Ownership: options are read during the call. Threads: one at a time for each session.
bankshot_status bankshot_session_set_options(struct bankshot_session *session,
                                             const struct bankshot_session_options *options);

// Appends tokens and computes them; another answer begins behind them. When an id or the number of ids is refused,
// nothing changes. After BANKSHOT_ERR_CANCELLED and BANKSHOT_ERR_IO all are appended, and the next call computes what
// is left.
// Ownership: the ids are read during the call. Threads: one at a time for each session.
bankshot_status bankshot_session_feed(struct bankshot_session *session, const uint32_t *ids, uint64_t count);

// Appends a text and computes it, as bankshot_session_feed. Names of special tokens are read as these tokens. If it is
// the first text, the model's beginning-of-sequence token goes before it where the model asks for that.
// Ownership: the text is read during the call. Threads: one at a time for each session.
bankshot_status bankshot_session_feed_text(struct bankshot_session *session, const char *text, uint64_t text_bytes);

// Makes these the session's tokens and computes what is not known of them, as a conversation needs whose template
// changes earlier turns. Errors are those of bankshot_session_feed.
// Ownership: the ids are read during the call. Threads: one at a time for each session.
bankshot_status bankshot_session_prompt(struct bankshot_session *session, const uint32_t *ids, uint64_t count);

// Keeps the first tokens of the session alone; another answer begins behind them.
// Ownership: none changes. Threads: one at a time for each session.
bankshot_status bankshot_session_truncate(struct bankshot_session *session, uint64_t tokens);

// Chooses the next token, the most likely one, after computing all before it. The event with which an answer ends says
// why; BANKSHOT_ERR_STATE: it has ended, or there are no tokens. Other errors are those of bankshot_session_feed, and
// change no token.
// Ownership: the event is the caller's. Threads: one at a time for each session.
bankshot_status bankshot_session_next(struct bankshot_session *session, struct bankshot_event *event);

// Text of the last event, in UTF-8 and without a closing zero: whole characters that its token completes.
// Ownership: the buffer is the caller's. Threads: one at a time for each session.
bankshot_status bankshot_session_text(const struct bankshot_session *session, char *buffer, size_t cap, size_t *needed);

// Logits that the last event's token was chosen from; BANKSHOT_ERR_STATE without BANKSHOT_SESSION_LOGITS or an event.
// Ownership: the buffer is the caller's. Threads: one at a time for each session.
bankshot_status bankshot_session_logits(const struct bankshot_session *session,
                                        float *buffer,
                                        size_t cap,
                                        size_t *needed);

// Token ids of the session from number first on: those that were fed, and those that were chosen. They stay readable
// whatever happens to the engine.
// Ownership: the buffer is the caller's. Threads: one at a time for each session.
bankshot_status bankshot_session_ids(const struct bankshot_session *session,
                                     uint64_t first,
                                     uint32_t *ids,
                                     size_t cap,
                                     size_t *needed);

// Lets the session's running call, or the next one that computes, end with BANKSHOT_ERR_CANCELLED before its next step
// or chunk. Nothing is lost: a further call goes on.
// Ownership: none changes. Threads: any.
bankshot_status bankshot_session_cancel(const struct bankshot_session *session);

// What the session has needed so far.
// Ownership: none changes. Threads: one at a time for each session.
bankshot_status bankshot_session_stats(const struct bankshot_session *session, struct bankshot_stats *stats);

// Saves the session under a name in a folder, which is created if it is missing. All tokens are computed for that; a
// last one without a place in the context is not part of the file. Flags are those of BANKSHOT_SAVE.
// Ownership: the texts are read during the call. Threads: one at a time for each session.
bankshot_status bankshot_session_save(struct bankshot_session *session,
                                      const char *folder,
                                      uint64_t folder_bytes,
                                      const char *name,
                                      uint64_t name_bytes,
                                      uint32_t flags);

// Makes a saved session this one. Until all of the file was verified, nothing changes.
// Ownership: the texts are read during the call. Threads: one at a time for each session.
bankshot_status bankshot_session_restore(struct bankshot_session *session,
                                         const char *folder,
                                         uint64_t folder_bytes,
                                         const char *name,
                                         uint64_t name_bytes);

// What a saved session says of itself, as JSON; `bankshot session inspect --json` prints the same. Needs no engine.
// Flags are those of BANKSHOT_INSPECT.
// Ownership: the texts are read during the call, the buffer is the caller's. Threads: any.
bankshot_status bankshot_saved_inspect(const char *folder,
                                       uint64_t folder_bytes,
                                       const char *name,
                                       uint64_t name_bytes,
                                       uint32_t flags,
                                       char *buffer,
                                       size_t cap,
                                       size_t *needed);

// Deletes a saved session that no other is a delta of (BANKSHOT_ERR_STATE). Flags are those of BANKSHOT_DELETE.
// Needs no engine.
// Ownership: the texts are read during the call. Threads: any.
bankshot_status bankshot_saved_delete(const char *folder,
                                      uint64_t folder_bytes,
                                      const char *name,
                                      uint64_t name_bytes,
                                      uint32_t flags);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* BANKSHOT_H */
