/*
 * Traces a child process by ptrace, with buffers for a part of the processor's extended state, and compares the
 * parts with the whole state, which the program reads by system calls. Exits with 0, or with 1 after printing the
 * failed check. With the C library's ptrace, the first check that sets a part of the state fails.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

enum { EXTENDED_STATE = 0x202, GENERAL = 1, ROOM_BYTES = 64 * 1024, STACK_BYTES = 8192, GUARD_BYTES = 4 * ROOM_BYTES };

/* Offsets in the state: the xmm registers, each of 16 bytes; the XSAVE header; the area that depends on the
 * processor. */
enum { XMM_AT = 160, HEADER_AT = 512, MORE_AT = 576 };

#define REGISTERS 16
#define REGISTER_BYTES 32

static unsigned char loaded[REGISTERS][REGISTER_BYTES], stored[REGISTERS][REGISTER_BYTES];
static unsigned char before[ROOM_BYTES], after[ROOM_BYTES], part[2 * ROOM_BYTES];
static size_t whole;
static pid_t child;
static long in_child = 0x123456789abcdef0, minus_one = -1;

#define CHECK(holds, ...)                                              \
	do {                                                           \
		if (!(holds)) {                                        \
			const char *why = strerror(errno);             \
			fprintf(stderr, __VA_ARGS__);                  \
			fprintf(stderr, " (errno: %s): %s\n", why, #holds); \
			if (child > 0)                                 \
				kill(child, SIGKILL);                  \
			exit(1);                                       \
		}                                                      \
	} while (0)

#define EACH_REGISTER(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7) \
	DO(8) DO(9) DO(10) DO(11) DO(12) DO(13) DO(14) DO(15)
#define LOAD_YMM(n) "vmovdqu " #n "*32(%0), %%ymm" #n "\n"
#define STORE_YMM(n) "vmovdqu %%ymm" #n ", " #n "*32(%1)\n"
#define LOAD_XMM(n) "movdqu " #n "*32(%0), %%xmm" #n "\n"
#define STORE_XMM(n) "movdqu %%xmm" #n ", " #n "*32(%1)\n"
#define CLOBBERED                                                                                      \
	"memory", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", \
		"xmm11", "xmm12", "xmm13", "xmm14", "xmm15"

/* Size of a vector register of this processor in bytes: 32 with AVX, otherwise 16. */
static size_t register_bytes(void)
{
	return __builtin_cpu_supports("avx") ? 32 : 16;
}

/* The byte that the tracer stores in xmm1; differs between the traced processes. */
static unsigned char set_byte(size_t length)
{
	return (unsigned char)(0x80 | (length & 0x3f));
}

/* The traced process: loads the registers, and compares them after the tracer has set xmm1, the lower half of
 * ymm1. */
static int traced(size_t length)
{
	size_t known = register_bytes();

	for (int n = 0; n < REGISTERS; n++)
		for (int i = 0; i < REGISTER_BYTES; i++)
			loaded[n][i] = (unsigned char)(1 + n * 7 + i);
	if (ptrace(PTRACE_TRACEME, 0, 0, 0) != 0)
		return 2;
	if (known == 32)
		__asm__ volatile(EACH_REGISTER(LOAD_YMM) "int3\n" EACH_REGISTER(STORE_YMM)
				 :
				 : "r"(loaded), "r"(stored)
				 : CLOBBERED);
	else
		__asm__ volatile(EACH_REGISTER(LOAD_XMM) "int3\n" EACH_REGISTER(STORE_XMM)
				 :
				 : "r"(loaded), "r"(stored)
				 : CLOBBERED);
	memset(loaded[1], set_byte(length), 16);
	for (int n = 0; n < REGISTERS; n++)
		if (memcmp(loaded[n], stored[n], known) != 0)
			return 10 + n;
	return 0;
}

/* Reads the whole state from the kernel; returns its size in bytes. */
static size_t state(unsigned char *to)
{
	struct iovec all = {to, ROOM_BYTES};
	long result = syscall(SYS_ptrace, (long)PTRACE_GETREGSET, (long)child, (long)EXTENDED_STATE, &all);

	CHECK(result == 0, "the kernel does not say the state");
	return all.iov_len;
}

static void check_get(size_t length)
{
	struct iovec own = {part, length};
	size_t got = length < whole ? length : whole;

	memset(part, 0xa5, sizeof part);
	CHECK(ptrace(PTRACE_GETREGSET, child, EXTENDED_STATE, &own) == 0, "getting %zu of %zu bytes", length, whole);
	CHECK(own.iov_len == got, "getting %zu of %zu bytes says %zu", length, whole, own.iov_len);
	CHECK(memcmp(part, before, got) == 0, "getting %zu of %zu bytes", length, whole);
	for (size_t i = got; i < sizeof part; i++)
		CHECK(part[i] == 0xa5, "getting %zu of %zu bytes writes byte %zu", length, whole, i);
}

static void check_set(size_t length)
{
	struct iovec own = {part, length};
	size_t used = length < whole ? length : whole;

	memset(part, 0, sizeof part);
	memcpy(part, before, used);
	memset(part + XMM_AT + 16, set_byte(length), 16);
	CHECK(ptrace(PTRACE_SETREGSET, child, EXTENDED_STATE, &own) == 0, "setting %zu of %zu bytes", length, whole);
	CHECK(own.iov_len == used, "setting %zu of %zu bytes says %zu", length, whole, own.iov_len);
	CHECK(state(after) == whole, "the state has another size");
	memset(before + XMM_AT + 16, set_byte(length), 16);
	for (size_t i = 0; i < whole; i++)
		CHECK(after[i] == before[i], "setting %zu of %zu bytes changes byte %zu", length, whole, i);
}

static void check_peek(void)
{
	struct user_regs_struct registers;
	long untouched = 77;
	long word = ptrace(PTRACE_PEEKDATA, child, &in_child, &untouched);

	CHECK(word == in_child && untouched == 77, "peeking at data says %lx", word);
	word = ptrace(PTRACE_PEEKTEXT, child, &in_child, &untouched);
	CHECK(word == in_child && untouched == 77, "peeking at text says %lx", word);
	errno = EPERM;
	word = ptrace(PTRACE_PEEKDATA, child, &minus_one, NULL);
	CHECK(word == -1 && errno == 0, "peeking at -1 says %lx", word);
	CHECK(ptrace(PTRACE_GETREGS, child, NULL, &registers) == 0, "getting the registers");
	word = ptrace(PTRACE_PEEKUSER, child, offsetof(struct user, regs.rip), NULL);
	CHECK(word == (long)registers.rip, "peeking at a register says %lx", word);
	errno = 0;
	CHECK(ptrace(PTRACE_PEEKDATA, child, NULL, NULL) == -1 && errno == EIO, "peeking at nothing");
}

static void check_others(void)
{
	struct user_regs_struct registers, same;
	struct iovec own = {&same, sizeof same};

	CHECK(ptrace(PTRACE_GETREGS, child, NULL, &registers) == 0, "getting the registers");
	CHECK(ptrace(PTRACE_GETREGSET, child, GENERAL, &own) == 0, "getting the general registers");
	CHECK(own.iov_len == sizeof same && memcmp(&same, &registers, sizeof same) == 0, "the general registers");
	CHECK(ptrace(PTRACE_SETREGSET, child, GENERAL, &own) == 0, "setting the general registers");
	CHECK(ptrace(PTRACE_POKEDATA, child, &in_child, 5L) == 0, "poking");
	CHECK(ptrace(PTRACE_PEEKDATA, child, &in_child, NULL) == 5, "what was poked");
	CHECK(ptrace(PTRACE_POKEDATA, child, &in_child, in_child) == 0, "poking");
}

static void check_errors(void)
{
	struct iovec own = {part, 512};
	/* This process does not trace its own parent. */
	pid_t other = getppid();

	errno = 0;
	CHECK(ptrace(PTRACE_GETREGSET, other, EXTENDED_STATE, &own) == -1 && errno == ESRCH, "getting another's");
	CHECK(own.iov_base == part && own.iov_len == 512, "getting another's changes the length");
	errno = 0;
	CHECK(ptrace(PTRACE_SETREGSET, other, EXTENDED_STATE, &own) == -1 && errno == ESRCH, "setting another's");
	CHECK(own.iov_base == part && own.iov_len == 512, "setting another's changes the length");
	errno = 0;
	CHECK(ptrace(PTRACE_GETREGSET, child, EXTENDED_STATE, NULL) == -1 && errno == EFAULT, "getting into nothing");
	errno = 0;
	CHECK(ptrace(PTRACE_SETREGSET, child, EXTENDED_STATE, NULL) == -1 && errno == EFAULT, "setting from nothing");
	errno = 0;
	CHECK(ptrace((enum __ptrace_request)0x7777, child, NULL, NULL) == -1 && errno == EIO, "a request of no kind");
	errno = 0;
	CHECK(ptrace(PTRACE_PEEKDATA, other, &in_child, NULL) == -1 && errno == ESRCH, "peeking at another");
}

static ucontext_t here, there;
static size_t length_on_small_stack;

static void on_small_stack(void)
{
	struct iovec own = {part, length_on_small_stack};
	long got = ptrace(PTRACE_GETREGSET, child, EXTENDED_STATE, &own);
	long set = ptrace(PTRACE_SETREGSET, child, EXTENDED_STATE, &own);

	length_on_small_stack = got == 0 && set == 0 ? 0 : length_on_small_stack;
}

/* Gets and sets the state on a stack that is smaller than the buffers, above inaccessible memory. */
static void check_small_stack(size_t length)
{
	size_t all = GUARD_BYTES + STACK_BYTES;
	char *place = mmap(NULL, all, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *stack = place + GUARD_BYTES;

	CHECK(place != MAP_FAILED, "no memory");
	CHECK(mprotect(stack, STACK_BYTES, PROT_READ | PROT_WRITE) == 0, "no memory");
	CHECK(getcontext(&there) == 0, "no context");
	there.uc_stack.ss_sp = stack;
	there.uc_stack.ss_size = STACK_BYTES;
	there.uc_link = &here;
	makecontext(&there, on_small_stack, 0);
	length_on_small_stack = length;
	CHECK(swapcontext(&here, &there) == 0, "no context");
	CHECK(length_on_small_stack == 0, "on a small stack");
	munmap(place, all);
}

static void check(size_t length)
{
	int status;

	child = fork();
	CHECK(child >= 0, "no process");
	if (child == 0)
		_exit(traced(length));
	CHECK(waitpid(child, &status, 0) == child, "no process");
	CHECK(WIFSTOPPED(status) && WSTOPSIG(status) == SIGTRAP, "the process does not stop, status %x", status);
	whole = state(before);
	CHECK(whole >= MORE_AT, "the state has only %zu bytes", whole);
	check_get(length);
	check_set(length);
	check_small_stack(length);
	check_peek();
	check_others();
	check_errors();
	CHECK(ptrace(PTRACE_CONT, child, NULL, NULL) == 0, "the process does not go on");
	CHECK(waitpid(child, &status, 0) == child, "no process");
	child = 0;
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0,
	      "after setting %zu of %zu bytes the process has other registers, status %x", length, whole, status);
}

int main(void)
{
	/* First a part of the state, which no kernel accepts. */
	check(HEADER_AT);
	check(MORE_AT);
	check(whole - 8);
	check(whole);
	check(whole + 8);
	check(2 * ROOM_BYTES);
	printf("%zu bytes, registers of %zu\n", whole, register_bytes());
	return 0;
}
