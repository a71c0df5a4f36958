/*
 * ptrace for User-Mode Linux, loaded before the C library's.
 *
 * User-Mode Linux 6.1 reserves 2696 bytes for the extended state of a processor (XSAVE: x87, SSE, AVX and so
 * on), and hands the kernel that many when it sets the state of a process. The kernel takes the state whole or
 * not at all, and it is larger on newer processors: AMX alone has tiles of 8 KiB. So setting it fails, and
 * User-Mode Linux panics as it starts its first process.
 *
 * This library has room for all of the state. Who gets it is given as much as they have room for; what they
 * set is the beginning, and the rest stays as it is. Everything else goes to the kernel unchanged, and results
 * and errno are those of the C library's ptrace. An iovec that is to be used must be memory of the caller: here
 * the program crashes where the kernel would say EFAULT.
 *
 * User-Mode Linux calls it on stacks of a few pages that are its own, so the state is not on the stack; and it
 * does not call it from handlers of signals, so one buffer a thread will do. That buffer has its place when the
 * program starts (initial-exec), and touching it allocates nothing.
 */
#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#if !defined(__x86_64__) || !defined(__LP64__)
#error "User-Mode Linux is a program of x86-64."
#endif

/* Requests and the kind of state, as the kernel numbers them. */
enum {
	PEEK_TEXT = 1,
	PEEK_USER = 3,
	GET_REGISTERS = 0x4204,
	SET_REGISTERS = 0x4205,
	EXTENDED_STATE = 0x202,
};

/* More than any processor has: the kernel says how much of it there is. */
enum { ROOM_BYTES = 64 * 1024 };

static __thread unsigned char whole[ROOM_BYTES]
	__attribute__((aligned(64), tls_model("initial-exec")));

/* The system call: -1 and errno where it fails. */
static long kernel(int request, pid_t pid, long address, void *data)
{
	return syscall(SYS_ptrace, (long)request, (long)pid, address, data);
}

/* The state as far as it fits; the caller's length becomes what was written. */
static long get_state(pid_t pid, struct iovec *own)
{
	struct iovec all = {whole, sizeof whole};
	long result = kernel(GET_REGISTERS, pid, EXTENDED_STATE, &all);

	if (result < 0)
		return result;
	if (own->iov_len > all.iov_len)
		own->iov_len = all.iov_len;
	memcpy(own->iov_base, whole, own->iov_len);
	return result;
}

/* The beginning of the state; the caller's length becomes what was used of it. */
static long set_state(pid_t pid, struct iovec *own)
{
	struct iovec all = {whole, sizeof whole};
	size_t length = own->iov_len;
	long result = kernel(GET_REGISTERS, pid, EXTENDED_STATE, &all);

	if (result < 0)
		return result;
	if (length > all.iov_len)
		length = all.iov_len;
	memcpy(whole, own->iov_base, length);
	result = kernel(SET_REGISTERS, pid, EXTENDED_STATE, &all);
	if (result >= 0)
		own->iov_len = length;
	return result;
}

/*
 * The C library declares it with a variable number of arguments. They come in the same registers as these four
 * words; of a request and a process only the lower half of the word counts.
 */
__attribute__((visibility("default")))
long ptrace(long request_word, long pid_word, long address, long data)
{
	int request = (int)request_word;
	pid_t pid = (pid_t)pid_word;

	if (request >= PEEK_TEXT && request <= PEEK_USER) {
		/* The kernel writes the word through the pointer; it is the result here. */
		long word;
		long result = kernel(request, pid, address, &word);

		if (result < 0)
			return result;
		/* The word may be -1. */
		errno = 0;
		return word;
	}
	if (address == EXTENDED_STATE && data != 0) {
		if (request == GET_REGISTERS)
			return get_state(pid, (struct iovec *)data);
		if (request == SET_REGISTERS)
			return set_state(pid, (struct iovec *)data);
	}
	return kernel(request, pid, address, (void *)data);
}
