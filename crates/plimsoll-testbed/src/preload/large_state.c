/*
 * Simulates, for tests on any processor, a kernel whose processor has an extended state that is 8 KiB larger than
 * this processor's state, as with AMX. Replaces the functions syscall and ptrace of the C library; a library that
 * is preloaded before this library and defines ptrace, such as ptrace.c, calls this library's syscall.
 */
#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>

enum { PEEK_TEXT = 1, PEEK_USER = 3, GET_REGISTERS = 0x4204, SET_REGISTERS = 0x4205, EXTENDED_STATE = 0x202 };
enum { MORE_BYTES = 8192, ROOM_BYTES = 64 * 1024 };

static unsigned char bytes[ROOM_BYTES];

/* Calls the kernel; returns the result, or an error as a negative number. */
static long kernel(long number, long a, long b, long c, long d, long e, long f)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return result;
}

static long state(long request, long pid, struct iovec *own)
{
	struct iovec real = {bytes, sizeof bytes};
	long result = kernel(SYS_ptrace, GET_REGISTERS, pid, EXTENDED_STATE, (long)&real, 0, 0);
	size_t whole = real.iov_len + MORE_BYTES;

	if (result < 0)
		return result;
	if (own == NULL)
		return -EFAULT;
	if (own->iov_len % 8 != 0)
		return -EINVAL;
	if (own->iov_len > whole)
		own->iov_len = whole;
	if (request == GET_REGISTERS) {
		memset(bytes + real.iov_len, 0, MORE_BYTES);
		memcpy(own->iov_base, bytes, own->iov_len);
		return 0;
	}
	if (own->iov_len < whole)
		return -EFAULT;
	memcpy(bytes, own->iov_base, real.iov_len);
	return kernel(SYS_ptrace, SET_REGISTERS, pid, EXTENDED_STATE, (long)&real, 0, 0);
}

__attribute__((visibility("default")))
long syscall(long number, long a, long b, long c, long d, long e, long f)
{
	long result;

	if (number == SYS_ptrace && c == EXTENDED_STATE && (a == GET_REGISTERS || a == SET_REGISTERS))
		result = state(a, b, (struct iovec *)d);
	else
		result = kernel(number, a, b, c, d, e, f);
	if (result < 0 && result >= -4095) {
		errno = (int)-result;
		return -1;
	}
	return result;
}

__attribute__((visibility("default")))
long ptrace(int request, int pid, long address, long data)
{
	long word;

	if (request < PEEK_TEXT || request > PEEK_USER)
		return syscall(SYS_ptrace, request, pid, address, data, 0, 0);
	if (syscall(SYS_ptrace, request, pid, address, (long)&word, 0, 0) < 0)
		return -1;
	errno = 0;
	return word;
}
