"""The custom resources of pingcap.com/v1alpha1 as typed models, and what follows from a spec alone.

    decoding      JSON tree → model, with errors that name field, value and way out
    defaulting    the spec completed in memory; the user's object is never written
    accessor      what a component's pods get once cluster level and component level are merged
    config, toml  a component's configuration as tables, and as byte-stable text
    ordinals      how many pods, and which
    predicates    what a status says: ready, available, upgrading
    validation    what can't work, and what can no longer change
    crd           the CustomResourceDefinitions, generated from the models

Nothing here waits, writes or asks: pure functions of the objects they are given.
"""
