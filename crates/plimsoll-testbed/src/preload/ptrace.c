/*
 * ptrace(2) for User-Mode Linux, loaded before the function of the C library.
 *
 * User-Mode Linux 6.1 reserves 2696 bytes for the extended state of a processor (XSAVE: x87, SSE, AVX and so on),
 * and passes 2696 bytes to the kernel when it sets the state of a process. The kernel accepts only the whole state,
 * which is larger on newer processors: AMX alone has tiles of 8 KiB. Setting the state then fails, and User-Mode
 * Linux panics at the start of its first process.
 *
 * This library has a buffer for the whole state. A caller that gets the state receives as many bytes as its buffer
 * holds; a caller that sets the state sets the beginning, and the rest stays unchanged. All other requests go to
 * the kernel unchanged, and results and errno are as with the C library's ptrace. The iovec of a caller must be
 * readable and writable memory: otherwise the program crashes, whereas the kernel would return EFAULT.
 *
 * User-Mode Linux calls ptrace on stacks of a few pages, so the buffer is not on the stack; and User-Mode Linux
 * does not call ptrace in signal handlers, so one buffer per thread suffices. The buffer exists from the start of
 * the thread (TLS model initial-exec), so an access allocates nothing.
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

/* Requests of ptrace, and the type of the extended state (NT_X86_XSTATE), by the kernel's numbers. */
enum {
	PEEK_TEXT = 1,
	PEEK_USER = 3,
	GET_REGISTERS = 0x4204,
	SET_REGISTERS = 0x4205,
	EXTENDED_STATE = 0x202,
};

/* Buffer size, larger than the state of any processor; the kernel reports the actual size. */
enum { ROOM_BYTES = 64 * 1024 };

static __thread unsigned char whole[ROOM_BYTES]
	__attribute__((aligned(64), tls_model("initial-exec")));

/* The system call; returns -1 and sets errno if the call fails. */
static long kernel(int request, pid_t pid, long address, void *data)
{
	return syscall(SYS_ptrace, (long)request, (long)pid, address, data);
}

/* Gets the beginning of the state, as far as the caller's buffer holds; sets `own->iov_len` to the bytes written. */
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

/* Sets the beginning of the state, and keeps the rest; sets `own->iov_len` to the bytes used. */
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
 * The C library declares ptrace with a variable number of arguments, which are passed in the same registers as
 * these four words. Of the words of the request and of the process number, only the lower half is valid.
 */
__attribute__((visibility("default")))
long ptrace(long request_word, long pid_word, long address, long data)
{
	int request = (int)request_word;
	pid_t pid = (pid_t)pid_word;

	if (request >= PEEK_TEXT && request <= PEEK_USER) {
		/* The kernel stores the word at the pointer; the C library's ptrace returns the word. */
		long word;
		long result = kernel(request, pid, address, &word);

		if (result < 0)
			return result;
		/* A result of -1 is an error only if errno is not 0. */
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
