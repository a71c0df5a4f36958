# Listing the directories of a large, narrow and deep tree.

set $dir=/tmp        # directory the files go to
set $nfiles=50000    # number of (empty) files
set $meandirwidth=5  # mean entries per directory
set $nthreads=16     # number of listing threads

define fileset name=bigfileset, path=$dir, size=0, entries=$nfiles,
               dirwidth=$meandirwidth, prealloc

define process name=lsdir, instances=1 {
  thread name=dirlister, memsize=1m, instances=$nthreads {
    flowop listdir name=listdir1, filesetname=bigfileset
  }
}
