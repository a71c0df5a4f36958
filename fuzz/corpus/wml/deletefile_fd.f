# deletefile with a slot removes the file that was in it, and indexed counts from 0 modulo the entries.
# expect: file number 13 modulo 10 is 00000004: it alone is gone; 1 open, 1 close, 1 delete.

set mode quit alldone
set $number=13  # number of the file to delete

define fileset name=data, path=/tmp, entries=10, dirwidth=100, dirgamma=0, size=100, prealloc=100

define process name=worker {
  thread name=workerthread, memsize=1m, instances=1 {
    flowop openfile name=open1, filesetname=data, indexed=$number, fd=1
    flowop closefile name=close1, fd=1
    flowop deletefile name=delete1, filesetname=data, fd=1
    flowop finishoncount name=end, value=1
  }
}

run
