# Opening and closing the files of a large tree.

set $dir=/tmp          # directory the files go to
set $nfiles=50000      # number of (empty) files
set $meandirwidth=100  # mean entries per directory
set $nthreads=16       # number of opening threads

define fileset name=bigfileset, path=$dir, size=0, entries=$nfiles,
               dirwidth=$meandirwidth, prealloc

define process name=fileopen, instances=1 {
  thread name=fileopener, memsize=1m, instances=$nthreads {
    flowop openfile name=openfile1, filesetname=bigfileset, fd=1
    flowop closefile name=closefile1, fd=1
  }
}
