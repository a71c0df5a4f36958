define file name=sda,path=/dev,size=1g
define process name=p {
  thread name=t {
    flowop read name=r,filename=sda,iosize=4k
  }
}
