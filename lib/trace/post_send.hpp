// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// The programs of bpf/post_send.bpf.c on one function.
#pragma once

#include "function.hpp"
#include "post_row.hpp"
#include "what_if.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

struct bpf_link;
struct bpf_program;
struct post_send_bpf;
struct ring_buffer;

namespace kverbs::trace
{

enum class method {
	fentry, // a trampoline at the function's entry
	kprobe, // a breakpoint there
};

std::string_view name(method m);

// What is asked of the programs. All count posts and what they carry.
enum class question {
	latency, // how long do they take?
	batch,   // how many work requests have they?
	what_if, // the same, and each post, to replay it
	cost,    // what does a post cost, and what each of its work requests?
};

std::string_view name(question q);

struct inquiry {
	question about = question::latency;
	std::optional<std::uint32_t> qp; // only posts of that QP, of whatever device
};

// What became of posts that are to be replayed.
struct event_losses {
	std::uint64_t no_room = 0; // nobody read the others in time
	std::string no_passes;     // why passes over CQs were not seen; empty: they were
};

class post_send_probe
{
      public:
	// Attach to @f; std::system_error if that cannot be done.
	post_send_probe(const function &f, method m, const inquiry &asked);
	~post_send_probe();
	post_send_probe(post_send_probe &&) noexcept;
	post_send_probe &operator=(post_send_probe &&) noexcept;

	// No call is counted any more; those under way may still return.
	void stop();

	std::vector<post_row> rows() const;

	// Of question::what_if: replay what came since the last time, in @to. It must be
	// called often enough, or the kernel has no room for more. Not to be moved from then on.
	void events(replay &to);
	event_losses lost_events() const;

	// Exact after stop(): before it, calls under way count as returns not seen.
	post_losses losses() const;

      private:
	struct deleter {
		void operator()(post_send_bpf *s) const;
		void operator()(bpf_link *l) const;
		void operator()(ring_buffer *r) const;
	};
	using link = std::unique_ptr<bpf_link, deleter>;

	void configure();
	void choose_programs(const function &f);
	link attach(bpf_program *p, const function &f, bool ret) const;
	void attach(const function &f);
	static int on_event(void *self, void *event, std::size_t size);
	std::vector<kverbs_post_row>
	read(const std::function<void(const kverbs_post_cpu &)> &other) const;
	post_row describe(std::uint32_t index, const kverbs_post_row &from) const;
	std::uint64_t recursion_misses() const;
	void attach_passes();
	const replay_key &key_of(std::uint32_t row);

	std::unique_ptr<post_send_bpf, deleter> programs_;
	link exit_, entry_, pd_freed_, freed_, renamed_;
	bpf_program *call_ = nullptr;
	bpf_program *return_ = nullptr; // none where only calls matter
	method method_;
	inquiry asked_;
	std::uint32_t cpus_ = 0;

	// Of question::what_if.
	std::vector<link> passes_;
	std::string no_passes_;
	std::vector<replay_key> keys_; // of rows, as far as they are known
	std::unique_ptr<ring_buffer, deleter> ring_;
	replay *to_ = nullptr; // while events() runs
	std::size_t left_ = 0;
};

} // namespace kverbs::trace
