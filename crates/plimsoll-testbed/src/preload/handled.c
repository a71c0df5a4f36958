/*
 * Tests handles.c: opens files by their handles without CAP_DAC_READ_SEARCH, below the directory in the first
 * argument. If a result differs from the result for root, prints the failed check and exits with 1.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EXPECT(condition) \
	do { \
		if (!(condition)) { \
			fprintf(stderr, "line %d: %s: %s\n", __LINE__, #condition, strerror(errno)); \
			exit(1); \
		} \
	} while (0)

struct handle {
	struct file_handle head;
	unsigned char bytes[MAX_HANDLE_SZ];
};

static int root;

static void drop_the_right(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3];

	EXPECT(syscall(SYS_capget, &header, sets) == 0);
	sets[0].effective &= ~(1U << CAP_DAC_READ_SEARCH);
	EXPECT(syscall(SYS_capset, &header, sets) == 0);
}

static struct handle handle_of(const char *name)
{
	struct handle made = { .head.handle_bytes = MAX_HANDLE_SZ };
	int mount;

	EXPECT(name_to_handle_at(root, name, &made.head, &mount, 0) == 0);
	return made;
}

static int opened(struct handle *handle, int flags)
{
	return open_by_handle_at(root, &handle->head, flags);
}

/* Creates a file with one letter. */
static void make(const char *name, char letter)
{
	int fd = openat(root, name, O_WRONLY | O_CREAT | O_EXCL, 0600);

	EXPECT(fd >= 0 && write(fd, &letter, 1) == 1 && close(fd) == 0);
}

static char letter_in(int fd)
{
	char letter = 0;

	EXPECT(fd >= 0 && pread(fd, &letter, 1, 0) == 1);
	return letter;
}

int main(int count, char **given)
{
	struct handle f, other, dir, link;
	struct stat found;
	int fd;

	EXPECT(count == 2);
	root = open(given[1], O_RDONLY | O_DIRECTORY);
	EXPECT(root >= 0);
	drop_the_right();
	EXPECT(mkdirat(root, "d", 0700) == 0 && mkdirat(root, "d/e", 0700) == 0);
	make("d/f", 'f');
	f = handle_of("d/f");
	dir = handle_of("d");
	EXPECT(letter_in(opened(&f, O_RDONLY)) == 'f');

	/* The file was moved, and another file has the old name. */
	EXPECT(renameat(root, "d/f", root, "d/e/g") == 0);
	make("d/f", 'x');
	EXPECT(letter_in(opened(&f, O_RDWR)) == 'f');
	other = handle_of("d/f");
	EXPECT(letter_in(opened(&other, O_RDONLY)) == 'x');

	/* The parent directory was renamed. */
	EXPECT(renameat(root, "d", root, "h") == 0);
	EXPECT(letter_in(opened(&f, O_RDONLY)) == 'f');
	fd = opened(&dir, O_RDONLY | O_DIRECTORY);
	EXPECT(fd >= 0 && faccessat(fd, "e/g", F_OK, 0) == 0);
	dir = handle_of(".");
	EXPECT(opened(&dir, O_RDONLY | O_DIRECTORY) >= 0);

	/* A symbolic link can be opened with O_PATH only. */
	EXPECT(symlinkat("h/f", root, "l") == 0);
	link = handle_of("l");
	fd = opened(&link, O_PATH | O_NOFOLLOW);
	EXPECT(fd >= 0 && fstat(fd, &found) == 0 && S_ISLNK(found.st_mode));
	EXPECT(opened(&link, O_RDONLY) < 0 && errno == ELOOP);

	/* A file without a name is found while the file is open; then its handle is stale. */
	make("m", 'm');
	other = handle_of("m");
	EXPECT(letter_in(opened(&other, O_RDONLY)) == 'm');
	EXPECT(unlinkat(root, "m", 0) == 0);
	make("m", 'n');
	EXPECT(letter_in(opened(&other, O_RDONLY)) == 'm');
	EXPECT(close_range(root + 1, ~0U, 0) == 0);
	EXPECT(opened(&other, O_RDONLY) < 0 && errno == ESTALE);
	return 0;
}
