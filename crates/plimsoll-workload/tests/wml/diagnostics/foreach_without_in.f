foreach $x 1,2 {
  run 10
}
