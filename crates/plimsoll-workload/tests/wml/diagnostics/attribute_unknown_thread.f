define process name=p {
  thread name=t,memsiz=1m {
    flowop hog value=1
  }
}
