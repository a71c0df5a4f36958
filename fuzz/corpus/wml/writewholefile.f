# writewholefile writes the planned size of the file, in pieces, as one operation.
# expect: 5 files of 10000 bytes; 5 creates, 5 whole writes of 50000 bytes in all, 5 closes.

set mode quit alldone

define fileset name=data, path=/tmp, entries=5, dirwidth=100, dirgamma=0, size=10000

define process name=worker {
  thread name=workerthread, memsize=1m, instances=1 {
    flowop createfile name=create1, filesetname=data, fd=1
    flowop writewholefile name=write1, fd=1, iosize=4k
    flowop closefile name=close1, fd=1
  }
}

run
