# Checking out a source tree: many small files are created in many directories, examined and read.

set $dir=/tmp         # directory the files go to
set $nfiles=10000     # number of files in the tree
set $meandirwidth=10  # mean entries per directory
set $filesize=cvar(type=cvar-gamma,parameters=mean:8192;gamma:1.5)  # size of a file (bytes, random)
set $iosize=1m        # bytes per read and write
set $nthreads=1       # number of threads that check out

set mode quit firstdone

define fileset name=worktree, path=$dir, size=$filesize, entries=$nfiles,
               dirwidth=$meandirwidth

define process name=bringover, instances=1 {
  thread name=bringoverthread, memsize=10m, instances=$nthreads {
    flowop createfile name=createfile1, filesetname=worktree, fd=1
    flowop writewholefile name=writefile1, fd=1, iosize=$iosize
    flowop closefile name=closefile1, fd=1
    flowop statfile name=statfile1, filesetname=worktree
    flowop openfile name=openfile2, filesetname=worktree, fd=2
    flowop readwholefile name=readfile2, fd=2, iosize=$iosize
    flowop closefile name=closefile2, fd=2
  }
}
