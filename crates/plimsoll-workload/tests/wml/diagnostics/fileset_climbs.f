define fileset name=files,path=/data/../etc,entries=10,dirwidth=5
define process name=p {
  thread name=t {
    flowop read name=r,filesetname=files,iosize=4k
  }
}
