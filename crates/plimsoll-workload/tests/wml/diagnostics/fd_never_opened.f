define fileset name=files,path=/data,entries=10,dirwidth=5,prealloc
define process name=p {
  thread name=t {
    flowop openfile name=o,filesetname=files,fd=1
    flowop readwholefile name=r,fd=2
    flowop closefile name=c,fd=1
  }
}
