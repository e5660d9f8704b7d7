"""tensor2tensor's models, whole: a training folder in, a Keras model out.

    from tfpe import migration

    loaded = migration.load("t2t_train/transformer", vocab="vocab.subwords")
    loaded.model.save("model.keras")

The model loads with plain Keras after `import tfpe`.
"""

from tfpe.migration.decoding import decode
from tfpe.migration.model import Migrated, load, to_layout
from tfpe.migration.text import text_encoder

__all__ = ["Migrated", "decode", "load", "text_encoder", "to_layout"]
