# openfile goes round the existing files by index, with one hand for all of them.
# expect: opening and deleting by slot 3 times removes files 00000001 to 00000003; 3 opens, 3 closes, 3 deletes.

set mode quit alldone

define fileset name=data, path=/tmp, entries=5, dirwidth=100, dirgamma=0, size=10, prealloc=100

define process name=worker {
  thread name=workerthread, memsize=1m, instances=1 {
    flowop openfile name=open1, filesetname=data, fd=1
    flowop closefile name=close1, fd=1
    flowop deletefile name=delete1, filesetname=data, fd=1
    flowop finishoncount name=end, value=3, target=delete1
  }
}

run
