# A random read larger than the file is an error.
# expect: the run fails (exit 1) or is refused (exit 2), and names the flowop read1.

define file name=data, path=/tmp, size=1000, prealloc

define process name=worker {
  thread name=workerthread, memsize=1m, instances=1 {
    flowop read name=read1, filename=data, iosize=4k, random
  }
}

run 5
