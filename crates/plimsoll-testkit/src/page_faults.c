/*
 * Checks whether AVX registers (SSE registers without AVX) survive page faults, at each of which User-Mode Linux gets
 * and sets the state of the process. Prints the number of lost registers; exits with 1 if a register was lost, with 2
 * if memory cannot be mapped.
 */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

enum { FAULTS = 2000, PAGE_BYTES = 4096 };

static unsigned char loaded[32], stored[32];

int main(void)
{
	size_t known = __builtin_cpu_supports("avx") ? 32 : 16;
	unsigned char *pages = mmap(NULL, (size_t)FAULTS * PAGE_BYTES, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int lost = 0;

	if (pages == MAP_FAILED)
		return 2;
	for (int n = 0; n < FAULTS; n++) {
		unsigned char *page = pages + (size_t)n * PAGE_BYTES;

		memset(loaded, 1 + n % 255, sizeof loaded);
		if (known == 32)
			__asm__ volatile("vmovdqu (%0), %%ymm9\n movb $1, (%1)\n vmovdqu %%ymm9, (%2)"
					 :
					 : "r"(loaded), "r"(page), "r"(stored)
					 : "memory", "xmm9");
		else
			__asm__ volatile("movdqu (%0), %%xmm9\n movb $1, (%1)\n movdqu %%xmm9, (%2)"
					 :
					 : "r"(loaded), "r"(page), "r"(stored)
					 : "memory", "xmm9");
		lost += memcmp(loaded, stored, known) != 0;
	}
	printf("%d of %d lost\n", lost, FAULTS);
	return lost != 0;
}
