# opennext opens the next file in the next descriptor slot, one slot for each file (128 at most), before it uses one
# again. Filebench rotates through 128 slots whatever the number of files; more slots than files reach no more files.
# expect: 300 reads of 1024 bytes; 4 opens by the read, one for each file.

set mode quit alldone

define fileset name=data, path=/tmp, entries=4, dirwidth=100, dirgamma=0, size=4096, prealloc=100

define process name=worker {
  thread name=workerthread, memsize=1m, instances=1 {
    flowop read name=read1, filesetname=data, iosize=1k, random, opennext, iters=300
    flowop finishoncount name=end, value=1
  }
}

run
