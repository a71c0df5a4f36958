# writewholefile without iosize writes the whole file in one piece.
# expect: 3 files of 5000 bytes; 3 whole writes of 15000 bytes in all.

set mode quit alldone

define fileset name=data, path=/tmp, entries=3, dirwidth=100, dirgamma=0, size=5000

define process name=worker {
  thread name=workerthread, memsize=1m, instances=1 {
    flowop createfile name=create1, filesetname=data, fd=1
    flowop writewholefile name=write1, fd=1
    flowop closefile name=close1, fd=1
  }
}

run
