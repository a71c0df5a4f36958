/*
 * open_by_handle_at for nfs-ganesha, loaded before the C library's.
 *
 * A server has to find a file by its handle, whatever has become of its name. The kernel does that for root of
 * the machine only (CAP_DAC_READ_SEARCH where no namespace is), and root of a namespace is told EPERM; handles of
 * names it gives to everybody. This library finds the file by what the kernel does not refuse. It remembers the
 * path of each handle that is made, and looks whether what lies there has that handle still; else it walks through
 * the file system, as far as files are open in this process also through those, whose names may be gone. A file
 * that is nowhere is ESTALE. Where the kernel does not refuse, its answer is the result.
 *
 * Walking takes time by the number of files: it is for file systems of tests. If the exports are below one
 * directory of a larger file system, the variable PLIMSOLL_EXPORTS names it, and nothing else is walked through.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EXPORTED __attribute__((visibility("default")))

/* Lists of what is remembered; more handles make them longer. */
enum { LISTS = 1 << 14 };

/* A file may be moved while it is looked for, from where nobody has looked to where somebody has. */
enum { WALKS = 3 };

/* Longest path below /proc/self/fd. */
enum { LINK_SIZE = 64 };

struct handle {
	struct file_handle head;
	unsigned char bytes[MAX_HANDLE_SZ];
};

struct known {
	struct known *next;
	struct handle handle;
	char *path;
};

static struct known *lists[LISTS];
static pthread_mutex_t lists_lock = PTHREAD_MUTEX_INITIALIZER;

static bool is_same(const struct file_handle *one, const struct file_handle *other)
{
	return one->handle_type == other->handle_type && one->handle_bytes == other->handle_bytes &&
	       memcmp(one->f_handle, other->f_handle, one->handle_bytes) == 0;
}

/* The handle of a name, or with an empty one, of what is open. */
static bool handle_of(int dir, const char *name, struct handle *found)
{
	int mount;

	found->head.handle_bytes = MAX_HANDLE_SZ;
	return syscall(SYS_name_to_handle_at, dir, name, &found->head, &mount, *name ? 0 : AT_EMPTY_PATH) == 0;
}

static bool is_handle_of(int fd, const struct file_handle *handle)
{
	struct handle found;

	return handle_of(fd, "", &found) && is_same(&found.head, handle);
}

/* The list that a handle is in (FNV-1a). */
static struct known **list_of(const struct file_handle *handle)
{
	unsigned long hash = 0xcbf29ce484222325;

	for (unsigned i = 0; i < handle->handle_bytes; i++)
		hash = (hash ^ handle->f_handle[i]) * 0x100000001b3;
	return &lists[hash % LISTS];
}

static struct known *known(const struct file_handle *handle)
{
	struct known *entry = *list_of(handle);

	while (entry && !is_same(&entry->handle.head, handle))
		entry = entry->next;
	return entry;
}

/* Remembers the path of a handle. What there is no memory for is not remembered. */
static void remember(const struct file_handle *handle, const char *path)
{
	char *copy = strdup(path);
	struct known *entry;

	if (!copy || handle->handle_bytes > MAX_HANDLE_SZ) {
		free(copy);
		return;
	}
	pthread_mutex_lock(&lists_lock);
	entry = known(handle);
	if (!entry && (entry = calloc(1, sizeof *entry))) {
		memcpy(&entry->handle, handle, sizeof *handle + handle->handle_bytes);
		entry->next = *list_of(handle);
		*list_of(handle) = entry;
	}
	if (entry) {
		free(entry->path);
		entry->path = copy;
		copy = NULL;
	}
	pthread_mutex_unlock(&lists_lock);
	free(copy);
}

/* Composes the path of a name in an open directory. False if it is too long, or the directory has none. */
static bool path_of(int dir, const char *name, char path[PATH_MAX])
{
	char link[LINK_SIZE];
	ssize_t length;

	if (*name == '/' || dir == AT_FDCWD)
		return snprintf(path, PATH_MAX, "%s", name) < PATH_MAX;
	snprintf(link, sizeof link, "/proc/self/fd/%d", dir);
	length = readlink(link, path, PATH_MAX);
	if (length < 0 || length == PATH_MAX)
		return false;
	path[length] = '\0';
	if (!*name)
		return true;
	return snprintf(path + length, PATH_MAX - length, "/%s", name) < PATH_MAX - length;
}

/* Opens a name if it has that handle, as a place only. */
static int place_at(int dir, const char *name, const struct file_handle *handle)
{
	int fd = openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0 || is_handle_of(fd, handle))
		return fd;
	close(fd);
	return -1;
}

/* Apart from its callers, of which there is one for each directory on the way: a stack has no room for as many
 * paths. */
__attribute__((noinline)) static void remember_name(int dir, const char *name, const struct file_handle *handle)
{
	char path[PATH_MAX];

	if (path_of(dir, name, path))
		remember(handle, path);
}

static int place_known(const struct file_handle *handle)
{
	struct known *entry;
	char path[PATH_MAX] = "";

	pthread_mutex_lock(&lists_lock);
	entry = known(handle);
	if (entry)
		strcpy(path, entry->path);
	pthread_mutex_unlock(&lists_lock);
	return *path ? place_at(AT_FDCWD, path, handle) : -1;
}

/* Looks for a handle in a directory, which is closed, and in those below it. */
static int place_below(int dir_fd, const struct file_handle *handle)
{
	DIR *dir = dir_fd < 0 ? NULL : fdopendir(dir_fd);
	struct dirent *entry;
	struct handle found;
	int place = -1;

	if (!dir) {
		if (dir_fd >= 0)
			close(dir_fd);
		return -1;
	}
	while (place < 0 && (entry = readdir(dir))) {
		const char *name = entry->d_name;

		if (!strcmp(name, ".") || !strcmp(name, "..") || !handle_of(dir_fd, name, &found))
			continue;
		if (is_same(&found.head, handle)) {
			place = place_at(dir_fd, name, handle);
			if (place >= 0)
				remember_name(dir_fd, name, handle);
		} else if (entry->d_type == DT_DIR) {
			int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

			place = place_below(openat(dir_fd, name, flags), handle);
		}
	}
	closedir(dir);
	return place;
}

/* Looks for a handle among the files that this process has open. */
static int place_open(const struct file_handle *handle)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *entry;
	int place = -1;

	while (dir && place < 0 && (entry = readdir(dir))) {
		int fd = atoi(entry->d_name);

		if (*entry->d_name != '.' && fd != dirfd(dir) && is_handle_of(fd, handle)) {
			/* Another thread may have closed it meanwhile, and opened something else. */
			place = fcntl(fd, F_DUPFD_CLOEXEC, 0);
			if (place >= 0 && !is_handle_of(place, handle)) {
				close(place);
				place = -1;
			}
		}
	}
	if (dir)
		closedir(dir);
	return place;
}

/* The directory of a mounted file system below which all files are; it is to be closed. */
static int top_of(int mount)
{
	const char *exports = getenv("PLIMSOLL_EXPORTS");
	int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
	int top = exports ? open(exports, flags) : -1;
	struct stat of_top, of_mount;

	if (top >= 0 && fstat(top, &of_top) == 0 && fstat(mount, &of_mount) == 0 && of_top.st_dev == of_mount.st_dev)
		return top;
	if (top >= 0)
		close(top);
	return openat(mount, ".", flags);
}

static int place_of(int mount, const struct file_handle *handle)
{
	int place = place_known(handle);

	if (place < 0)
		place = place_at(mount, ".", handle);
	for (int walk = 0; place < 0 && walk < WALKS; walk++) {
		place = place_below(top_of(mount), handle);
		if (place < 0)
			place = place_open(handle);
	}
	return place;
}

/* nfs-ganesha loads its file systems so that they find the C library before what is preloaded. */
EXPORTED void *dlopen(const char *file, int mode)
{
	void *(*next)(const char *, int) = (void *(*)(const char *, int))dlsym(RTLD_NEXT, "dlopen");

	return next(file, mode & ~RTLD_DEEPBIND);
}

EXPORTED int name_to_handle_at(int dir, const char *name, struct file_handle *handle, int *mount, int flags)
{
	int done = syscall(SYS_name_to_handle_at, dir, name, handle, mount, flags);

	if (done == 0) {
		int before = errno;

		remember_name(dir, name, handle);
		errno = before;
	}
	return done;
}

EXPORTED int open_by_handle_at(int mount, struct file_handle *handle, int flags)
{
	int fd = syscall(SYS_open_by_handle_at, mount, handle, flags);
	char link[LINK_SIZE];
	int place, why;

	if (fd >= 0 || errno != EPERM)
		return fd;
	place = place_of(mount, handle);
	if (place < 0) {
		errno = ESTALE;
		return -1;
	}
	/* A symbolic link cannot be opened but as a place. */
	if (flags & O_PATH) {
		fd = fcntl(place, flags & O_CLOEXEC ? F_DUPFD_CLOEXEC : F_DUPFD, 0);
	} else {
		snprintf(link, sizeof link, "/proc/self/fd/%d", place);
		fd = open(link, flags & ~O_NOFOLLOW);
	}
	why = errno;
	close(place);
	errno = why;
	return fd;
}
