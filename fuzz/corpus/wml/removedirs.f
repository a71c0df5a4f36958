# Removing many empty directories until all are removed.

set $dir=/tmp          # directory the tree goes to
set $ndirs=10000       # number of directories to remove
set $meandirwidth=100  # mean entries per directory
set $nthreads=16       # number of threads

set mode quit firstdone

define fileset name=bigfileset, path=$dir, size=0, leafdirs=$ndirs,
               dirwidth=$meandirwidth, prealloc

define process name=remdir, instances=1 {
  thread name=removedirectory, memsize=1m, instances=$nthreads {
    flowop removedir name=removedir1, filesetname=bigfileset
  }
}
