experiment "x" {
  duration = "10s"
}

dynamic "sweep" {
  for_each = [1]
  content {}
}

dynamic "node" {
  for_each = 7
  labels   = [node.value]
  content {}
}

dynamic "link" {
  for_each = range(3)
  labels   = ["l${link.value}"]
  content {
    betwen = ["a", "b"]
  }
}
