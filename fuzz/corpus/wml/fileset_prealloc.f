# prealloc=50 makes about half of the files; create makes the others.
# expect: 20 files in all; those made beforehand have 50 bytes, those created 0; 3 to 17 creates.

set mode quit alldone

define fileset name=data, path=/tmp, entries=20, dirwidth=100, dirgamma=0, size=50, prealloc=50

define process name=worker {
  thread name=workerthread, memsize=1m, instances=1 {
    flowop createfile name=create1, filesetname=data, fd=1
    flowop closefile name=close1, fd=1
  }
}

run
