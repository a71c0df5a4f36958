# A file that does nothing but create ends by itself when all files are there.
# expect: the run is valid (exit 0) after 3 creates, and says that its work ended.

define fileset name=data, path=/tmp, entries=3, dirwidth=100, dirgamma=0, size=10

define process name=worker {
  thread name=workerthread, memsize=1m, instances=1 {
    flowop createfile name=create1, filesetname=data, fd=1
    flowop closefile name=close1, fd=1
  }
}

run 5
