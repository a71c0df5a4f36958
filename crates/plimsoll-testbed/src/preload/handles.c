/*
 * open_by_handle_at(2) for nfs-ganesha, loaded before the function of the C library.
 *
 * A server must find a file by its handle, even after the file was renamed. The kernel opens handles only for root
 * of the machine (CAP_DAC_READ_SEARCH in the initial user namespace); root of a user namespace gets EPERM. Any
 * user can get the handle of a name (name_to_handle_at). This library records the path of each handle that
 * name_to_handle_at returns, and checks whether the file at the recorded path still has the handle. If not, the
 * library searches the file system, and then the files that this process has open, which may have lost their
 * names. If no file has the handle, the result is ESTALE. If the kernel does not return EPERM, the kernel's result
 * is the result.
 *
 * The duration of a search grows with the number of files, so the library suits file systems of tests only. The
 * environment variable PLIMSOLL_EXPORTS restricts the search to the directory that contains all exports.
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

/* Number of hash lists of recorded handles; the length of a list has no limit. */
enum { LISTS = 1 << 14 };

/* Maximum number of searches: during a search, a file may be moved from a directory that the search has not
 * reached into a directory that the search has left. */
enum { WALKS = 3 };

/* Bytes of a path below /proc/self/fd, with the final null byte. */
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

/* Gets the handle of a name in a directory; with an empty name, the handle of the open file `dir`. */
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

/* Hash list of a handle (FNV-1a). */
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

/* Records the path of a handle; has no effect if memory is exhausted. */
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

/* Composes the path of a name in an open directory. Returns false if the path is too long, or if the path of the
 * directory cannot be read. */
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

/* Opens a name with O_PATH if its file has the handle; returns -1 otherwise. */
static int place_at(int dir, const char *name, const struct file_handle *handle)
{
	int fd = openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0 || is_handle_of(fd, handle))
		return fd;
	close(fd);
	return -1;
}

/* Not inlined: the caller is recursive, and a path buffer in each of its stack frames would exhaust the stack. */
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

/* Searches a directory and its subdirectories for a handle; closes `dir_fd`. */
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

/* Searches the open files of this process for a handle. */
static int place_open(const struct file_handle *handle)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *entry;
	int place = -1;

	while (dir && place < 0 && (entry = readdir(dir))) {
		int fd = atoi(entry->d_name);

		if (*entry->d_name != '.' && fd != dirfd(dir) && is_handle_of(fd, handle)) {
			/* Another thread may have closed the descriptor, and opened another file with its number. */
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

/* Opens the directory at which a search begins: the directory of PLIMSOLL_EXPORTS if it is on the file system of
 * `mount`, else `mount` itself. The caller closes the descriptor. */
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

/* nfs-ganesha loads its FSAL modules with RTLD_DEEPBIND, by which a module finds the functions of the C library
 * before preloaded functions. */
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
	/* A symbolic link can be opened with O_PATH only. */
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
